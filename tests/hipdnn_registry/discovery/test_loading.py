"""Discovery over real distributions: folders with metadata and modules, put on sys.path."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

import pytest

from hipdnn_registry import (
    EngineRegistry,
    GraphError,
    InvalidInputError,
    ProviderError,
    ProviderRecord,
    ProviderStatus,
    UnknownEngineError,
)
from tests.graphs import conv_graph, relu_graph
from tests.hipdnn_registry.conftest import Site
from tests.providers import AcmeProvider, ReluEngine

GOOD = """
    from hipdnn_registry import hookimpl
    from tests.providers import AcmeProvider, ReluEngine

    @hookimpl
    def hipdnn_get_provider():
        return AcmeProvider(ReluEngine("{engine}"), name="{name}")
"""
UNAVAILABLE = """
    from hipdnn_registry import ProviderUnavailableError, hookimpl

    @hookimpl
    def hipdnn_get_provider():
        raise ProviderUnavailableError("no HIP device")
"""
BROKEN = {
    "import": "import a_module_that_is_not_there",
    "register": """
        from hipdnn_registry import hookimpl

        @hookimpl
        def hipdnn_get_provider(no_such_argument):
            return None
    """,
    "hook": """
        from hipdnn_registry import hookimpl

        @hookimpl
        def hipdnn_get_provider():
            raise OSError("libfoo.so: undefined symbol: bar")
    """,
    "contract": """
        from hipdnn_registry import hookimpl
        from tests.providers import AcmeProvider

        @hookimpl
        def hipdnn_get_provider():
            return AcmeProvider(name="future", api_version=(2, 3))
    """,
    "engines": """
        from hipdnn_registry import hookimpl
        from tests.providers import AcmeProvider

        class Provider(AcmeProvider):
            def engines(self):
                raise RuntimeError("no engines today")

        @hookimpl
        def hipdnn_get_provider():
            return Provider(name="lazy")
    """,
}

Install = Callable[..., None]


@pytest.fixture
def install(site: Site) -> Install:
    """Install distributions with one provider each."""

    def install(name: str, source: str, *, dist: str | None = None, hook: str = "") -> None:
        dist = dist or f"hipdnn-{name}-provider"
        site.install(dist, source, "hipdnn_registry.providers", name, hook)

    return install


def own_records(registry: EngineRegistry) -> dict[str, ProviderRecord]:
    """Records of the distributions of this test, not of what is installed beside them."""
    return {r.name: r for r in registry.providers() if r.distribution_version == "1.5"}


def test_a_provider_is_found_with_its_origin(install: Install) -> None:
    install("good", GOOD.format(engine="GOOD_ENGINE", name="good"))
    registry = EngineRegistry()
    record = own_records(registry)["good"]
    assert record.status is ProviderStatus.LOADED
    assert record.engines == ("GOOD_ENGINE",)
    assert record.distribution == "hipdnn-good-provider"
    assert record.entry_point == "hipdnn_good_provider"
    assert record.info is not None
    assert record.info.name == "good"
    plan = registry.create_execution_plan_ext(relu_graph(), "GOOD_ENGINE")
    assert plan.provider_name == "good"


def test_nothing_is_imported_before_the_first_question(install: Install) -> None:
    install("good", GOOD.format(engine="GOOD_ENGINE", name="good"))
    registry = EngineRegistry()
    assert "hipdnn_good_provider" not in sys.modules
    registry.providers()
    assert "hipdnn_good_provider" in sys.modules


@pytest.mark.parametrize("phase", BROKEN)
def test_a_broken_provider_hides_no_other_and_keeps_its_traceback(
    install: Install, phase: str
) -> None:
    install("aa", BROKEN[phase])
    install("zz", GOOD.format(engine="GOOD_ENGINE", name="zz"))
    registry = EngineRegistry()
    records = own_records(registry)
    assert records["zz"].status is ProviderStatus.LOADED
    broken = records["aa"]
    assert (broken.status, broken.phase) == (ProviderStatus.BROKEN, phase)
    assert broken.exception is not None
    assert type(broken.exception).__name__ in broken.traceback
    if phase in {"import", "hook"}:
        assert "hipdnn_aa_provider.py" in broken.traceback
    with pytest.raises(UnknownEngineError, match="AA_ENGINE") as caught:
        registry.create_execution_plan_ext(relu_graph(), "AA_ENGINE")
    causes = []
    error: BaseException | None = caught.value
    while error is not None:
        causes.append(error)
        error = error.__cause__
    assert broken.exception in causes
    assert "hipdnn-aa-provider 1.5" in str(caught.value)


@pytest.mark.parametrize("phase", BROKEN)
def test_strict_raises(install: Install, phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install("aa", BROKEN[phase])
    with pytest.raises(ProviderError, match=f"hipdnn-aa-provider 1.5.*phase '{phase}'"):
        EngineRegistry(strict=True).providers()
    monkeypatch.setenv("HIPDNN_REGISTRY_STRICT", "1")
    with pytest.raises(ProviderError):
        EngineRegistry().providers()
    assert EngineRegistry(strict=False).providers()


def test_unavailable_is_not_broken(install: Install) -> None:
    install("gpu", UNAVAILABLE)
    registry = EngineRegistry(strict=True)
    record = own_records(registry)["gpu"]
    assert (record.status, record.reason) == (ProviderStatus.UNAVAILABLE, "no HIP device")
    with pytest.raises(UnknownEngineError, match="is unavailable: no HIP device"):
        registry.create_execution_plan_ext(relu_graph(), "GPU_ENGINE")


def test_a_version_mismatch_names_both_and_the_way_out(install: Install) -> None:
    install("future", BROKEN["contract"])
    install("past", BROKEN["contract"].replace("(2, 3)", "(0, 9)").replace("future", "past"))
    records = own_records(EngineRegistry())
    assert "provider API 2.3, but this hipdnn-registry speaks 1." in records["future"].reason
    assert "upgrade the registry" in records["future"].reason
    assert "upgrade the provider" in records["past"].reason


def test_a_newer_minor_version_is_no_mismatch() -> None:
    registry = EngineRegistry([AcmeProvider(api_version=(1, 99))], entry_points=False)
    assert registry.engine_names() == ["ACME_RELU"]


def test_the_first_to_claim_an_engine_keeps_it(install: Install) -> None:
    install("bb", GOOD.format(engine="SAME_ENGINE", name="bb"), dist="aaa-second-by-entry")
    install("aa", GOOD.format(engine="SAME_ENGINE", name="aa"), dist="zzz-first-by-entry")
    registry = EngineRegistry()
    records = own_records(registry)
    assert records["bb"].engines == ("SAME_ENGINE",), "distributions are sorted by name"
    assert records["aa"].engines == ()
    refusal = records["aa"].refused["SAME_ENGINE"]
    assert "aaa-second-by-entry" in refusal
    assert "zzz-first-by-entry" in refusal
    in_process = AcmeProvider(ReluEngine("SAME_ENGINE"), name="mine")
    registry.register_provider(in_process)
    plan = registry.create_execution_plan_ext(relu_graph(), "SAME_ENGINE")
    assert plan.provider_name == "mine", "in process comes first"


def test_two_providers_of_one_name() -> None:
    registry = EngineRegistry(
        [AcmeProvider(ReluEngine("A")), AcmeProvider(ReluEngine("B"))], entry_points=False
    )
    first, second = registry.providers()
    assert first.engines == ("A",)
    assert second.status is ProviderStatus.BROKEN
    assert "calls itself 'acme'" in second.reason


@pytest.mark.parametrize(
    ("how", "listed"),
    [
        ("argument", "block: one"),
        ("environment", "HIPDNN_REGISTRY_BLOCK: one, other"),
        ("distribution", "block: Hipdnn_One.Provider"),
    ],
)
def test_block_and_allow(
    install: Install, how: str, listed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("one", BROKEN["import"])
    install("two", GOOD.format(engine="GOOD_ENGINE", name="two"))
    if how == "environment":
        monkeypatch.setenv("HIPDNN_REGISTRY_BLOCK", "one,other")
        registry = EngineRegistry()
    else:
        registry = EngineRegistry(block=["one" if how == "argument" else "Hipdnn_One.Provider"])
    records = own_records(registry)
    assert records["one"].status is ProviderStatus.BLOCKED
    assert records["one"].reason == f"on the block list ({listed})"
    assert records["two"].status is ProviderStatus.LOADED
    if how == "environment":
        monkeypatch.delenv("HIPDNN_REGISTRY_BLOCK")
        monkeypatch.setenv("HIPDNN_REGISTRY_ALLOW", "two")
        registry = EngineRegistry()
    else:
        registry = EngineRegistry(allow=["two"])
    assert {name: r.status for name, r in own_records(registry).items()} == {
        "one": ProviderStatus.BLOCKED,
        "two": ProviderStatus.LOADED,
    }


def test_refresh_finds_what_was_installed_meanwhile(install: Install) -> None:
    registry = EngineRegistry()
    assert "late" not in own_records(registry)
    install("late", GOOD.format(engine="LATE_ENGINE", name="late"))
    assert "late" not in own_records(registry), "a scan is done once"
    registry.refresh()
    assert own_records(registry)["late"].status is ProviderStatus.LOADED
    assert registry.is_supported(relu_graph())


def test_an_object_can_be_the_entry_point(install: Install) -> None:
    source = GOOD.format(engine="OBJECT_ENGINE", name="object").replace(
        "@hookimpl\n    def hipdnn_get_provider():",
        "class Hooks:\n      @hookimpl\n      def hipdnn_get_provider(self):",
    )
    source = source.replace("        return", "          return") + "\n    hooks = Hooks()\n"
    install("object", source, hook=":hooks")
    assert own_records(EngineRegistry())["object"].engines == ("OBJECT_ENGINE",)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1", "implements no hook"),
        (
            "from hipdnn_registry import hookimpl\n@hookimpl\ndef hipdnn_get_provider(): return 3",
            "returned 3, not a Provider",
        ),
        (
            "from hipdnn_registry import hookimpl\n@hookimpl\ndef hipdnn_get_provdier(): ...",
            "hipdnn_get_provdier",
        ),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
    ],
)
def test_what_is_no_provider(install: Install, source: str, problem: str) -> None:
    install("odd", source)
    record = own_records(EngineRegistry())["odd"]
    assert record.status is ProviderStatus.BROKEN
    assert problem in record.reason


def test_what_is_no_engine_is_refused_alone() -> None:
    provider = AcmeProvider(ReluEngine(), "not an engine", ReluEngine(""))  # type: ignore[arg-type]
    (record,) = EngineRegistry([provider], entry_points=False).providers()
    assert record.engines == ("ACME_RELU",)
    assert len(record.refused) == 2


class _NoInfo(AcmeProvider):
    def __init__(self) -> None:
        super().__init__()
        del self.info


class _FailingInfo(AcmeProvider):
    @property
    def info(self) -> Any:
        raise LookupError("who am I")

    @info.setter
    def info(self, value: Any) -> None:
        pass


def with_priority(priority: Any) -> ReluEngine:
    engine = ReluEngine("BAD_PRIORITY")
    engine.priority = priority
    return engine


def _with_engines(engines: Any) -> AcmeProvider:
    provider = AcmeProvider()
    provider.engines = lambda: engines  # type: ignore[method-assign]
    return provider


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: 3, "registered in process is 3, not a Provider"),
        (_NoInfo, "info must be a ProviderInfo, not None"),
        (_FailingInfo, "LookupError: who am I"),
        *(
            (lambda v=v: AcmeProvider(api_version=v), "api_version must be two ints")
            for v in (1, None, (), "1.0", (1,), ("1", "0"))
        ),
        (lambda: AcmeProvider(name=cast("str", ["a"])), "info.name must be a text"),
        (lambda: AcmeProvider(version=""), "info.version must be a text"),
        (lambda: AcmeProvider(libraries=None), "info.libraries must be a mapping"),
        *(
            (lambda v=v: AcmeProvider(knob_namespace=v), "info.knob_namespace must be a name of")
            for v in ("A.b", "a-b", "1a", 3, None)
        ),
        (lambda: AcmeProvider(knob_namespace="global"), "knob namespace 'global' is reserved"),
        (
            lambda: AcmeProvider(name="global", knob_namespace=""),
            "knob namespace 'global' is reserved",
        ),
        *(
            (lambda v=v: _with_engines(v), f"must return a sequence of Engine objects, not {v!r}")
            for v in (None, "ACME_RELU", 7)
        ),
    ],
)
def test_a_provider_against_the_contract_is_broken_alone(make: Any, problem: str) -> None:
    sound = AcmeProvider(ReluEngine("SOUND"), name="sound")
    registry = EngineRegistry([make(), sound], entry_points=False)
    broken, loaded = registry.providers()
    assert broken.status is ProviderStatus.BROKEN
    assert problem in broken.reason
    assert loaded.engines == ("SOUND",)
    assert registry.create_execution_plan_ext(relu_graph()).engine_name == "SOUND"


@pytest.mark.parametrize("priority", ["high", None, 1.5, True])
def test_an_engine_without_an_int_for_a_priority_is_refused_alone(priority: Any) -> None:
    provider = AcmeProvider(ReluEngine("SOUND"), with_priority(priority))
    (record,) = EngineRegistry([provider], entry_points=False).providers()
    assert (record.status, record.engines) == (ProviderStatus.LOADED, ("SOUND",))
    (problem,) = record.refused.values()
    assert "is no Engine with a text for a name and an int for a priority" in problem


def test_one_name_is_a_name_and_no_list_of_letters() -> None:
    for registry in (EngineRegistry(block="cpu"), EngineRegistry(allow="other")):
        assert "CPU_GEMM_ENGINE" not in registry.engine_names()
    with pytest.raises(InvalidInputError, match="block has None"):
        EngineRegistry(block=[None])  # type: ignore[list-item]
    for size in (-1, 1.5, "x", None, True):
        with pytest.raises(InvalidInputError, match="plan_cache_size"):
            EngineRegistry(plan_cache_size=size)  # type: ignore[arg-type]


def test_no_provider_at_all_says_what_to_install() -> None:
    registry = EngineRegistry(entry_points=False)
    assert registry.get_engine_configs(conv_graph()) == []
    with pytest.raises(Exception, match=r"pip install 'hipdnn-registry\[cpu\]'") as caught:
        registry.create_execution_plan_ext(conv_graph())
    assert not isinstance(caught.value, GraphError)


def test_a_misspelt_name_on_the_allow_list_is_noticed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HIPDNN_REGISTRY_ALLOW", "acmee")
    registry = EngineRegistry([AcmeProvider(ReluEngine())])
    (record,) = (r for r in registry.providers() if r.name == "acme")
    assert record.status is ProviderStatus.BLOCKED
    assert record.reason == "not on the allow list (HIPDNN_REGISTRY_ALLOW: acmee)"
    assert "HIPDNN_REGISTRY_ALLOW: no provider or distribution is called 'acmee'" in caplog.text
    assert "did you mean 'acme'" in caplog.text
    caplog.clear()
    assert EngineRegistry([AcmeProvider(ReluEngine())], allow="acme", block="gone").engine_names()
    assert not caplog.text


def test_a_name_on_the_block_list_is_noticed_where_it_is_near_one_that_is_there(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HIPDNN_REGISTRY_BLOCK", "acmee,gone")
    registry = EngineRegistry([AcmeProvider(ReluEngine())], entry_points=False)
    assert len(registry.engine_names()) == 1
    (message,) = caplog.messages
    assert message == (
        "HIPDNN_REGISTRY_BLOCK: no provider or distribution is called 'acmee'; found: acme; did "
        "you mean 'acme'?"
    )
