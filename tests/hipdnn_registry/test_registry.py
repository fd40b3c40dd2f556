"""EngineRegistry: choosing engines, settings, plans and the plan cache."""

from __future__ import annotations

import logging
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from hipdnn_registry import (
    BufferKind,
    Declined,
    DeprecatedKnobWarning,
    DroppedKnobWarning,
    EffectiveSetting,
    EngineDefectError,
    EngineOffer,
    EngineRegistry,
    Environment,
    ExecutionError,
    Graph,
    GraphError,
    HipdnnError,
    InvalidInputError,
    Knob,
    KnobError,
    KnobSetting,
    NoEngineError,
    Resolution,
    SettingSource,
    UnknownEngineError,
    UnsupportedGraphError,
    benchmarking_knob,
    default_registry,
    engine_id,
)
from tests.graphs import conv_graph, relu_graph
from tests.providers import TILE, AcmeProvider, ReluEngine, ReluPlan


@pytest.fixture
def engine() -> ReluEngine:
    return ReluEngine()


@pytest.fixture
def registry(engine: ReluEngine) -> EngineRegistry:
    return EngineRegistry([AcmeProvider(engine)], entry_points=False)


# Asking


def test_engine_configs(registry: EngineRegistry) -> None:
    (info,) = registry.get_engine_configs(relu_graph())
    assert (info.engine_name, info.engine_id) == ("ACME_RELU", engine_id("ACME_RELU"))
    assert info.knobs["acme.tile"] is TILE
    assert "global.benchmarking" in info.knobs
    assert info.supports_exhaustive
    assert info.estimated_workspace_size == 640
    assert registry.get_knobs_for_engine(relu_graph(), info.engine_id) == info.knobs
    assert registry.is_supported(relu_graph())
    assert not registry.is_supported(conv_graph())


def test_an_answer_is_asked_for_once_for_equal_graphs(
    registry: EngineRegistry, engine: ReluEngine
) -> None:
    for base in range(5):
        registry.get_engine_configs(relu_graph(uid_base=base, names="ab"))
    assert engine.queries == 1


def test_an_engine_whose_answers_differ_between_devices_is_asked_for_each() -> None:
    class DeviceEngine(ReluEngine):
        device: Any = 0

        def query_scope(self) -> Any:
            return self.device

        def query(self, graph: Graph) -> EngineOffer | Declined:
            return Declined(f"device {self.device} can't")

    engine = DeviceEngine()
    registry = EngineRegistry([AcmeProvider(engine)], entry_points=False)
    for device in (0, 1, 0):
        engine.device = device
        with pytest.raises(UnsupportedGraphError, match=f"device {device} can't"):
            registry.get_engine_config(relu_graph(), "ACME_RELU")
    engine.device = []
    problem = "engine ACME_RELU of provider 'acme' failed in query_scope: TypeError: unhashable"
    with pytest.raises(EngineDefectError, match=problem):
        registry.get_engine_config(relu_graph(), "ACME_RELU")


def test_a_knob_against_the_rules_is_a_defect_that_hides_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = ReluEngine(knobs=[TILE, Knob("miopen.tile", "", 1), benchmarking_knob()])
    registry = EngineRegistry([AcmeProvider(engine)], entry_points=False)
    with caplog.at_level(logging.ERROR, "hipdnn_registry"):
        (info,) = registry.get_engine_configs(relu_graph())
    assert info.knobs.ids == ("acme.tile", "global.benchmarking")
    assert "miopen.tile" in info.defects[0]
    assert "defect: engine ACME_RELU of provider 'acme': query: knob 'miopen.tile'" in caplog.text


def test_every_reason_is_given(registry: EngineRegistry) -> None:
    broken = ReluEngine("BROKEN_RELU", priority=-1)
    broken.failing["query"] = ZeroDivisionError("oops")
    registry.register_provider(AcmeProvider(broken, name="other"))
    with pytest.raises(NoEngineError) as caught:
        registry.create_execution_plan_ext(conv_graph())
    assert list(caught.value.reasons) == ["ACME_RELU", "BROKEN_RELU"]
    assert "no single relu_fwd" in caught.value.reasons["ACME_RELU"]
    assert caught.value.reasons["BROKEN_RELU"] == (
        "defect: engine BROKEN_RELU of provider 'other' failed in query: ZeroDivisionError: oops"
    )
    assert "ZeroDivisionError: oops" in str(caught.value)
    explanation = registry.explain(relu_graph())
    assert [answer.info is not None for answer in explanation.answers] == [True, False]
    with pytest.raises(EngineDefectError, match="oops") as defect:
        registry.create_execution_plan_ext(relu_graph(), "BROKEN_RELU")
    assert isinstance(defect.value.__cause__, ZeroDivisionError)


def test_a_bad_graph_is_bad_with_or_without_engines(registry: EngineRegistry) -> None:
    for asked in (registry, EngineRegistry(entry_points=False)):
        bad = conv_graph(w=(6, 3, 3, 3))
        for question in (
            asked.explain,
            asked.get_engine_configs,
            asked.is_supported,
            asked.create_execution_plan_ext,
        ):
            with pytest.raises(GraphError, match="do not divide"):
                question(bad)


def test_an_engine_that_declines_says_why(registry: EngineRegistry) -> None:
    with pytest.raises(UnsupportedGraphError, match="ACME_RELU.*no single relu_fwd"):
        registry.create_execution_plan_ext(conv_graph(), "ACME_RELU")


@pytest.mark.parametrize("asked", ["ACME_RELO", "acme_relu", 12345, "", "x" * 1000])
def test_an_unknown_engine(registry: EngineRegistry, asked: Any) -> None:
    with pytest.raises(UnknownEngineError, match="known engines: ACME_RELU") as caught:
        registry.create_execution_plan_ext(relu_graph(), asked)
    if str(asked).upper().startswith("ACME"):
        assert "did you mean 'ACME_RELU'?" in str(caught.value)


def test_priority_then_discovery_decide_and_a_preference_beats_them() -> None:
    engines = [ReluEngine("LOW", priority=-5), ReluEngine("FIRST"), ReluEngine("SECOND")]
    registry = EngineRegistry([AcmeProvider(*engines)], entry_points=False)

    def order(graph: Graph) -> list[str]:
        return [info.engine_name for info in registry.get_engine_configs(graph)]

    assert order(relu_graph()) == ["FIRST", "SECOND", "LOW"]
    assert registry.create_execution_plan_ext(relu_graph()).engine_name == "FIRST"
    wanting = relu_graph().set_preferred_engine_id_ext("LOW")
    assert order(wanting) == ["LOW", "FIRST", "SECOND"]
    assert registry.create_execution_plan_ext(wanting).engine_name == "LOW"
    soft = relu_graph().set_preferred_engine_id_ext("ELSEWHERE")
    assert registry.create_execution_plan_ext(soft).engine_name == "FIRST"


# Settings


def test_effective_settings_and_their_sources(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(relu_graph(), None, {"acme.tile": 4})
    assert plan.settings["acme.tile"] == (4, SettingSource.CALLER, "")
    assert plan.settings["global.benchmarking"] == (0, SettingSource.DEFAULT, "")
    assert plan.workspace_size == 40
    assert plan.notes == ("resolved",)
    assert registry.estimate_workspace(relu_graph(), None, {"acme.tile": 7}) == 70


@pytest.mark.parametrize(
    ("text", "asked", "value", "source", "detail"),
    [
        ("on", None, 1, SettingSource.ENVIRONMENT, "HIPDNN_FORCE_BENCHMARKING"),
        ("0", 1, 0, SettingSource.ENVIRONMENT, "HIPDNN_FORCE_BENCHMARKING over the caller's 1"),
        ("", 1, 1, SettingSource.CALLER, ""),
        ("what", None, 0, SettingSource.DEFAULT, ""),
    ],
)
def test_force_benchmarking(
    registry: EngineRegistry,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    asked: int | None,
    value: int,
    source: SettingSource,
    detail: str,
) -> None:
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", text)
    settings = {} if asked is None else {"global.benchmarking": asked}
    plan = registry.create_execution_plan_ext(relu_graph(), None, settings)
    assert plan.settings["global.benchmarking"] == (value, source, detail)


def test_force_benchmarking_only_where_the_knob_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", "1")
    registry = EngineRegistry([AcmeProvider(ReluEngine(knobs=[TILE]))], entry_points=False)
    assert list(registry.create_execution_plan_ext(relu_graph()).settings) == ["acme.tile"]


def test_an_unadvertised_knob_is_dropped_visibly_on_hits_too(
    registry: EngineRegistry, engine: ReluEngine, caplog: pytest.LogCaptureFixture
) -> None:
    settings = [KnobSetting("acme.tile", 4), KnobSetting("acme.tyle", 2)]
    for attempt in range(2):
        caplog.clear()
        with pytest.warns(DroppedKnobWarning, match="acme.tyle.*2.*did you mean 'acme.tile'") as w:
            plan = registry.create_execution_plan_ext(relu_graph(), None, settings)
        assert w[0].filename == __file__, "the warning points at the caller's line"
        assert plan.dropped_knobs == (settings[1],)
        assert plan.from_cache == bool(attempt)
        assert [r.levelname for r in caplog.records] == ["WARNING"]
        assert "acme.tyle" in repr(plan)
    assert engine.builds == 1
    assert registry.create_execution_plan_ext(relu_graph(), None, settings[:1]).dropped_knobs == ()


def test_strict_knobs_raise(registry: EngineRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"acme.tyle": 2}
    with pytest.raises(KnobError, match="acme.tyle.*ACME_RELU.*advertised: acme.tile"):
        registry.create_execution_plan_ext(relu_graph(), None, settings, strict=True)
    monkeypatch.setenv("HIPDNN_REGISTRY_STRICT_KNOBS", "1")
    with pytest.raises(KnobError, match="not advertised"):
        registry.create_execution_plan_ext(relu_graph(), None, settings)


@pytest.mark.parametrize("value", [0, 65, 1.0, "8", True])
def test_a_bad_value_of_an_advertised_knob_raises(registry: EngineRegistry, value: Any) -> None:
    with pytest.raises(KnobError, match="acme.tile"):
        registry.create_execution_plan_ext(relu_graph(), None, {"acme.tile": value})


def test_a_deprecated_knob_warns_once_and_names_its_successor(registry: EngineRegistry) -> None:
    with pytest.warns(DeprecatedKnobWarning, match="acme.old_tile.*use 'acme.tile'") as caught:
        registry.create_execution_plan_ext(relu_graph(), None, {"acme.old_tile": 3})
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan = registry.create_execution_plan_ext(relu_graph(), None, {"acme.old_tile": 3})
    assert plan.settings["acme.old_tile"].value == 3, "deprecated, but still honoured"


# Building and caching


def test_equal_graphs_share_a_compiled_plan_and_bind_their_own_names(
    registry: EngineRegistry, engine: ReluEngine
) -> None:
    first = registry.create_execution_plan_ext(relu_graph())
    second = registry.create_execution_plan_ext(relu_graph(uid_base=70, names="pq"))
    assert engine.builds == 1
    assert (first.from_cache, second.from_cache) == (False, True)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    y = np.full_like(x, np.nan)
    second.execute({"p": x, 71: y})
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_what_enters_the_cache_key(registry: EngineRegistry, engine: ReluEngine) -> None:
    def make(graph: Graph | None = None, **settings: int) -> bool:
        values = {f"acme.{name}": value for name, value in settings.items()}
        return registry.create_execution_plan_ext(graph or relu_graph(), None, values).from_cache

    assert not make()
    assert make()
    assert make(tile=8), "the default, spelled out, is the same plan"
    assert not make(tile=9)
    assert not make(relu_graph((3, 3)))
    engine.token = ("gfx90a", "3.5.1")
    assert not make()
    assert make()
    engine.cacheable = False
    assert not make()
    engine.cacheable = True
    assert make()
    info = registry.cache_info()
    assert (info.misses, info.currsize) == (4, 4)
    registry.clear()
    assert registry.cache_info().currsize == 0
    assert not make()


def test_forced_benchmarking_is_another_plan(
    registry: EngineRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.create_execution_plan_ext(relu_graph())
    monkeypatch.setenv("HIPDNN_FORCE_BENCHMARKING", "1")
    assert not registry.create_execution_plan_ext(relu_graph()).from_cache
    asked = registry.create_execution_plan_ext(relu_graph(), None, {"global.benchmarking": 1})
    assert asked.from_cache
    assert asked.settings["global.benchmarking"].source is SettingSource.ENVIRONMENT


@pytest.mark.parametrize("step", ["resolve", "build", "estimate_workspace"])
def test_a_failing_engine_is_named_and_nothing_is_kept(
    registry: EngineRegistry, engine: ReluEngine, step: str
) -> None:
    def act() -> object:
        if step == "estimate_workspace":
            return registry.estimate_workspace(relu_graph())
        return registry.create_execution_plan_ext(relu_graph())

    engine.failing[step] = LookupError("sorry")
    with pytest.raises(EngineDefectError, match=f"ACME_RELU.*{step}.*LookupError: 'sorry'|sorry"):
        act()
    engine.failing[step] = HipdnnError("on purpose")
    with pytest.raises(HipdnnError, match="^on purpose$"):
        act()
    engine.failing.clear()
    assert registry.cache_info().currsize == 0
    act()


ASKED = {
    "acme.tile": EffectiveSetting(8),
    "acme.old_tile": EffectiveSetting(8),
    "global.benchmarking": EffectiveSetting(0),
}
BREACHES: list[tuple[str, object, str]] = [
    ("query", EngineOffer(behavior_notes=None), "behavior_notes None"),  # type: ignore[arg-type]
    ("query", EngineOffer(knobs=7), "knobs 7"),  # type: ignore[arg-type]
    ("query", EngineOffer(workspace_size=-1), "workspace size -1"),
    ("query", EngineOffer(workspace_size="1"), "workspace size '1'"),  # type: ignore[arg-type]
    ("query", EngineOffer(buffer_kind="gpu"), "buffer_kind 'gpu'"),  # type: ignore[arg-type]
    ("query", Declined(""), "declined with reason ''"),
    ("query", Declined(None), "declined with reason None"),  # type: ignore[arg-type]
    ("query", None, "returned None"),
    ("resolve", None, "returned None"),
    ("resolve", Resolution({"acme.tile": 3}), "setting 3"),  # type: ignore[dict-item]
    ("resolve", Resolution(ASKED, cache_token=[1]), "cache_token"),  # type: ignore[arg-type]
    ("resolve", Resolution(ASKED, notes="note"), "notes 'note'"),  # type: ignore[arg-type]
    (
        "resolve",
        Resolution(ASKED, cacheable="no"),  # type: ignore[arg-type]
        "cacheable 'no'; a bool is due",
    ),
    ("resolve", Resolution({}), "lost acme.old_tile; lost acme.tile; lost global.benchmarking"),
    (
        "resolve",
        Resolution({**ASKED, "acme.other": EffectiveSetting(1)}),
        "set acme.other, which it does not advertise",
    ),
    (
        "resolve",
        Resolution({**ASKED, "acme.tile": EffectiveSetting(99, detail="best")}),
        "set acme.tile to 99: ",
    ),
    (
        "resolve",
        Resolution({**ASKED, "acme.tile": EffectiveSetting(16)}),
        "changed acme.tile from 8 to 16 and gave no detail that says why",
    ),
    ("build", None, "returned None, not a CompiledPlan"),
    ("estimate_workspace", "x", "workspace size 'x'"),
    ("estimate_workspace", -1, "workspace size -1"),
]


@pytest.mark.parametrize(("step", "returned", "problem"), BREACHES)
def test_what_an_engine_returns_is_checked(
    registry: EngineRegistry, engine: ReluEngine, step: str, returned: object, problem: str
) -> None:
    sound = AcmeProvider(ReluEngine("SOUND"), name="sound")
    registry.register_provider(sound)
    setattr(engine, step, lambda *_: returned)
    act: Any = registry.create_execution_plan_ext
    if step == "estimate_workspace":
        act = registry.estimate_workspace
    with pytest.raises(EngineDefectError, match=rf"ACME_RELU of provider 'acme'.*{step}") as caught:
        act(relu_graph(), "ACME_RELU")
    assert problem in str(caught.value)
    assert registry.create_execution_plan_ext(relu_graph(), "SOUND").engine_name == "SOUND"
    assert registry.explain(relu_graph()).answers[-1].info is not None


class NeverEqual:
    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")


def test_a_token_that_can_not_be_compared_is_the_engines_defect(
    registry: EngineRegistry, engine: ReluEngine
) -> None:
    engine.token = NeverEqual()
    registry.create_execution_plan_ext(relu_graph(), "ACME_RELU")
    engine.token = NeverEqual()
    with pytest.raises(EngineDefectError, match=r"ACME_RELU.*resolve gave a cache_token .*: no"):
        registry.create_execution_plan_ext(relu_graph(), "ACME_RELU")


def test_an_engine_may_change_a_setting_and_says_why(
    registry: EngineRegistry, engine: ReluEngine
) -> None:
    def resolve(_: Graph, settings: dict[str, EffectiveSetting], __: Environment) -> Resolution:
        asked = settings["acme.tile"]
        settings["acme.tile"] = asked._replace(value=16, detail=f"{asked.value} is too small here")
        return Resolution(settings)

    engine.resolve = resolve  # type: ignore[method-assign, assignment]
    plan = registry.create_execution_plan_ext(relu_graph(), "ACME_RELU", {"acme.tile": 3})
    assert plan.settings["acme.tile"] == (16, "caller", "3 is too small here")


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        ("workspace_size", None, "workspace size None"),
        ("workspace_size", -5, "workspace size -5"),
        ("notes", "n", "notes 'n'"),
        ("buffer_kind", "gpu", "buffer_kind 'gpu'"),
        ("buffer_kind", BufferKind.DEVICE, "of buffer_kind device, but query offered host"),
        ("in_place", [], "in_place []; a tuple of pairs of uids is due"),
        ("in_place", None, "in_place None; a tuple of pairs"),
        ("in_place", (2, 1), "in_place (2, 1), where 2 is no pair of uids"),
        ("in_place", ((2, 1), (2,)), "where (2,) is no pair"),
        ("in_place", ((2, True),), "where (2, True) is no pair"),
        ("in_place", ((99, 1),), "in_place ((99, 1),), but the graph writes no tensor of uid 99"),
        ("in_place", ((1, 2),), "writes no tensor of uid 1"),
        ("in_place", ((2, 2),), "reads no tensor of uid 2"),
    ],
)
def test_what_a_plan_says_is_checked(
    registry: EngineRegistry, engine: ReluEngine, attribute: str, value: object, problem: str
) -> None:
    """The graph reads tensor 1 and writes tensor 2."""

    def build(graph: Graph, resolution: Resolution) -> ReluPlan:
        plan = ReluPlan(graph, resolution)
        setattr(plan, attribute, value)
        return plan

    engine.build = build  # type: ignore[method-assign]
    with pytest.raises(EngineDefectError, match="ACME_RELU of provider 'acme': build") as caught:
        registry.create_execution_plan_ext(relu_graph(uid_base=1))
    assert problem in str(caught.value)
    assert registry.cache_info().currsize == 0


@pytest.mark.parametrize("step", ["query", "resolve", "build"])
def test_sys_exit_in_an_engine_ends_nothing(
    registry: EngineRegistry, engine: ReluEngine, step: str
) -> None:
    engine.failing[step] = SystemExit(3)
    with pytest.raises(EngineDefectError, match="ACME_RELU.*SystemExit: 3"):
        registry.create_execution_plan_ext(relu_graph(), "ACME_RELU")


def test_a_bind_that_fails_or_returns_nothing(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(relu_graph())
    pack = {name: np.zeros((2, 3), np.float32) for name in "xy"}
    plan._compiled.bind = lambda *_: None  # type: ignore[method-assign,assignment]
    with pytest.raises(EngineDefectError, match="bind returned None"):
        plan.bind(pack)
    plan._compiled.bind = lambda *_: 1 // 0  # type: ignore[method-assign,assignment]
    with pytest.raises(EngineDefectError, match="failed in bind: ZeroDivisionError"):
        plan.bind(pack)


def test_a_missing_knob_is_explained_by_the_rule_it_broke() -> None:
    engine = ReluEngine(knobs=[Knob("other.tile", "", 8)])
    registry = EngineRegistry([AcmeProvider(engine)], entry_points=False)
    with pytest.raises(EngineDefectError, match=r"KeyError: 'acme.tile'.*knob 'other.tile' lies"):
        registry.create_execution_plan_ext(relu_graph())


def test_values_that_compare_equal_are_other_plans() -> None:
    engine = ReluEngine(knobs=[TILE, Knob("acme.any", "Anything", 7)])
    registry = EngineRegistry([AcmeProvider(engine)], entry_points=False)
    for value in (1, 1.0, 0.0, -0.0, "1.0", 0, "('float', '1.0')"):
        plan = registry.create_execution_plan_ext(relu_graph(), None, {"acme.any": value})
        assert not plan.from_cache, value


def test_plans_are_immutable(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(relu_graph())
    with pytest.raises(AttributeError, match="immutable"):
        plan.graph = relu_graph()
    with pytest.raises(TypeError):
        plan.settings["acme.tile"] = 3  # type: ignore[index]


def test_a_generator_of_settings_is_read_once(registry: EngineRegistry) -> None:
    with pytest.warns(DeprecatedKnobWarning):
        registry.create_execution_plan_ext(
            relu_graph(),
            None,
            (KnobSetting("acme.old_tile", value) for value in (3,)),  # type: ignore[arg-type]
        )


@pytest.mark.parametrize(
    "settings",
    [3, 0, False, "", "acme.tile=3", KnobSetting("acme.tile", 3), {1: 1}, {None: 1}, [("a", 1)]],
)
def test_settings_that_are_none(registry: EngineRegistry, settings: Any) -> None:
    with pytest.raises(KnobError):
        registry.create_execution_plan_ext(relu_graph(), None, settings)


def test_questions_about_what_is_no_graph(registry: EngineRegistry) -> None:
    questions: list[Any] = [
        registry.explain,
        registry.get_engine_configs,
        registry.is_supported,
        registry.create_execution_plan_ext,
        registry.estimate_workspace,
    ]
    for question in questions:
        with pytest.raises(InvalidInputError, match="must be a hipdnn_registry.Graph"):
            question("conv")
    engines: list[Any] = [[], {}, 1.5, True, b"x"]
    for engine in engines:
        with pytest.raises(InvalidInputError, match="must be a name or an int id"):
            registry.create_execution_plan_ext(relu_graph(), engine)


def test_errors_travel_between_processes(registry: EngineRegistry) -> None:
    for graph in (conv_graph(), conv_graph(w=(6, 3, 3, 3))):
        with pytest.raises(HipdnnError) as caught:
            registry.create_execution_plan_ext(graph)
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)
        assert vars(again) == vars(caught.value)


def test_an_engine_that_fails_in_execute(registry: EngineRegistry) -> None:
    plan = registry.create_execution_plan_ext(relu_graph())
    plan._compiled.execute = lambda *_: 1 // 0  # type: ignore[method-assign,assignment]
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ExecutionError, match="ACME_RELU failed: ZeroDivisionError"):
        plan.execute({"x": x, "y": x.copy()})


def test_32_threads_build_once_and_run_side_by_side(
    registry: EngineRegistry, engine: ReluEngine
) -> None:
    together = threading.Barrier(32)

    def work(seed: int) -> None:
        together.wait()
        plan = registry.create_execution_plan_ext(relu_graph(uid_base=seed))
        for _ in range(20):
            x = np.random.default_rng(seed).standard_normal((2, 3), dtype=np.float32)
            y = np.empty_like(x)
            plan.execute({"x": x, "y": y})
            np.testing.assert_array_equal(y, np.maximum(x, 0))

    with ThreadPoolExecutor(32) as pool:
        for future in [pool.submit(work, seed) for seed in range(32)]:
            future.result()
    assert engine.builds == 1


def test_the_default_registry_is_one() -> None:
    assert default_registry() is default_registry()
