"""Kernels compiled and run by the emulator: pytest --miopen-emulator."""

from __future__ import annotations

import ctypes as c
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.miopen_emulator.device import (
    HIP_ILLEGAL_ADDRESS,
    HIP_INVALID_IMAGE,
    HIP_LAUNCH_FAILURE,
    HIP_NOT_FOUND,
    HIP_SUCCESS,
    CompilationError,
    Device,
)
from tests.native.test_leaks import allocated_bytes

if TYPE_CHECKING:
    from hipdnn_miopen_emulator.pytest_plugin import Emulation

pytestmark = pytest.mark.miopen_emulator

LANES = 64
"""Of a wavefront on the default device, gfx90a."""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setenv("MIOPEN_EMULATOR_KERNELS", "execute")
    return Device()


@pytest.fixture
def guarded(device: Device, monkeypatch: pytest.MonkeyPatch) -> Device:
    monkeypatch.setenv("MIOPEN_EMULATOR_GUARD", "1")
    return device


@pytest.fixture
def faults(miopen_emulator: Emulation) -> Any:
    return lambda: [event for event in miopen_emulator.events() if event["event"] == "fault"]


def run_hip(device: Device, source: str, *arguments: Any, **shape: Any) -> int:
    assert device.load(device.compile_hip(source)) == HIP_SUCCESS
    return device.launch("k", arguments, **shape)


def run_opencl(device: Device, source: str, *arguments: Any, **shape: Any) -> int:
    assert device.load(device.compile_opencl(source)) == HIP_SUCCESS
    return device.launch("k", arguments, **shape)


REVERSE_HIP = """
extern "C" __global__ void k(const float* x, float* y) {
    __shared__ float tile[256];
    unsigned first = blockIdx.x * blockDim.x;
    tile[threadIdx.x] = x[first + threadIdx.x];
    __syncthreads();
    y[first + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}"""
REVERSE_OPENCL = """
__kernel void k(const __global float* x, __global float* y) {
    __local float tile[256];
    tile[get_local_id(0)] = x[get_global_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[get_global_id(0)] = tile[get_local_size(0) - 1 - get_local_id(0)];
}"""


@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize(("run", "source"), [(run_hip, REVERSE_HIP), (run_opencl, REVERSE_OPENCL)])
def test_a_barrier_separates_what_a_block_writes_and_reads(
    device: Device, monkeypatch: pytest.MonkeyPatch, run: Any, source: str, threads: str
) -> None:
    monkeypatch.setenv("MIOPEN_EMULATOR_THREADS", threads)
    x = np.arange(200 * 256, dtype=np.float32)
    y = device.put(np.zeros_like(x))
    assert run(device, source, device.put(x), y, blocks=(200, 1, 1), block=(256, 1, 1)) == 0
    np.testing.assert_array_equal(y.read(), x.reshape(200, 256)[:, ::-1].ravel())


def test_items_that_have_ended_are_not_waited_for(device: Device) -> None:
    source = """
    extern "C" __global__ void k(int* y, int n) {
        __shared__ int seen[64];
        if(threadIdx.x >= n) return;
        for(int round = 0; round < 3; round++) {
            seen[threadIdx.x] = round * 100 + threadIdx.x;
            __syncthreads();
            y[threadIdx.x] += seen[n - 1 - threadIdx.x];
            __syncthreads();
        }
    }"""
    y = device.put(np.zeros(64, np.int32))
    assert run_hip(device, source, y, c.c_int(10)) == HIP_SUCCESS
    expected = [300 + 3 * (9 - i) for i in range(10)] + [0] * 54
    np.testing.assert_array_equal(y.read(), expected)


def test_shared_memory_of_the_launch(device: Device) -> None:
    source = """
    extern "C" __global__ void k(int* y) {
        extern __shared__ int buffer[];
        buffer[threadIdx.x] = threadIdx.x * 3;
        __syncthreads();
        y[threadIdx.x] = buffer[threadIdx.x ^ 1];
    }"""
    y = device.put(np.zeros(64, np.int32))
    assert run_hip(device, source, y, shared=256) == HIP_SUCCESS
    np.testing.assert_array_equal(y.read(), (np.arange(64) ^ 1) * 3)


@pytest.mark.parametrize(
    ("call", "source_lane"),
    [
        ("__shfl(x, 5)", lambda i: np.full_like(i, 5)),
        ("__shfl_down(x, 3)", lambda i: np.where(i + 3 < LANES, i + 3, i)),
        ("__shfl_up(x, 3)", lambda i: np.where(i >= 3, i - 3, i)),
        ("__shfl_xor(x, 17)", lambda i: i ^ 17),
        ("__shfl_down(x, 2, 8)", lambda i: np.where(i % 8 + 2 < 8, i + 2, i)),
        ("__shfl(x, 3, 16)", lambda i: i // 16 * 16 + 3),
    ],
)
def test_shuffles(device: Device, call: str, source_lane: Any) -> None:
    source = f"""
    extern "C" __global__ void k(const double* in, double* out) {{
        double x = in[threadIdx.x];
        out[threadIdx.x] = {call};
    }}"""
    x, lane = np.random.default_rng(0).random(256), np.arange(256) % LANES
    y = device.put(np.zeros(256))
    assert run_hip(device, source, device.put(x), y, block=(256, 1, 1)) == HIP_SUCCESS
    np.testing.assert_array_equal(y.read(), x[np.arange(256) - lane + source_lane(lane)])


def test_a_shuffle_in_a_branch_is_among_the_lanes_that_take_it(device: Device) -> None:
    source = """
    extern "C" __global__ void k(unsigned long* out) {
        if(threadIdx.x % 3 == 0)
            out[threadIdx.x] = __ballot(threadIdx.x > 30);
        __syncthreads();
        out[threadIdx.x] += __shfl_xor(threadIdx.x, 1);
    }"""
    y = device.put(np.zeros(64, np.uint64))
    assert run_hip(device, source, y) == HIP_SUCCESS
    ballot = sum(1 << i for i in range(31, 64) if i % 3 == 0)
    expected = [(i ^ 1) + (ballot if i % 3 == 0 else 0) for i in range(64)]
    np.testing.assert_array_equal(y.read(), np.array(expected, np.uint64))


def test_a_wavefront_of_32_lanes(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIOPEN_EMULATOR_ARCH", "gfx1030")
    source = """
    extern "C" __global__ void k(int* out) {
        int sum = threadIdx.x;
        for(int d = warpSize / 2; d; d /= 2) sum += __shfl_xor(sum, d);
        out[threadIdx.x] = sum;
    }"""
    y = device.put(np.zeros(64, np.int32))
    assert run_hip(device, source, y) == HIP_SUCCESS
    np.testing.assert_array_equal(y.read(), [sum(range(32))] * 32 + [sum(range(32, 64))] * 32)


def test_atomics_of_blocks_that_run_at_the_same_time(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIOPEN_EMULATOR_THREADS", "4")
    source = """
    extern "C" __global__ void k(float* sum, int* most, unsigned* bits) {
        atomicAdd(sum, 1.0f);
        atomicMax(most, (int)(blockIdx.x * blockDim.x + threadIdx.x));
        unsigned old = *bits, assumed;
        do { assumed = old; old = atomicCAS(bits, assumed, assumed + 2); } while(old != assumed);
    }"""
    buffers = [device.put(np.zeros(1, t)) for t in (np.float32, np.int32, np.uint32)]
    assert run_hip(device, source, *buffers, blocks=(300, 1, 1)) == HIP_SUCCESS
    items = 300 * 64
    assert [b.read()[0] for b in buffers] == [items, items - 1, 2 * items]


def test_opencl_atomics(device: Device) -> None:
    source = """
    __kernel void k(volatile __global int* sum, volatile __global uint* last) {
        __local int here;
        if(get_local_id(0) == 0) here = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        atomic_inc(&here);
        barrier(CLK_LOCAL_MEM_FENCE);
        if(get_local_id(0) == 0) atomic_add(sum, here);
        uint old = *last;
        while(atomic_cmpxchg(last, old, old + 1) != old) old = *last;
    }"""
    total, last = device.put(np.zeros(1, np.int32)), device.put(np.zeros(1, np.uint32))
    assert run_opencl(device, source, total, last, blocks=(200, 1, 1)) == HIP_SUCCESS
    assert (total.read()[0], last.read()[0]) == (200 * 64, 200 * 64)


def test_half_is_computed_in_float_and_rounded_where_it_is_stored(device: Device) -> None:
    source = """
    extern "C" __global__ void k(const _Float16* x, _Float16* y) {
        unsigned i = threadIdx.x;
        y[i] = x[i] * x[i] + x[i];
    }"""
    x = np.random.default_rng(1).standard_normal(64).astype(np.float16)
    y = device.put(np.zeros_like(x))
    assert run_hip(device, source, device.put(x), y) == HIP_SUCCESS
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(y.read(), (wide * wide + wide).astype(np.float16))


def test_opencl_half_vectors_and_a_multiply_add_that_rounds_once(device: Device) -> None:
    source = """
    #pragma OPENCL EXTENSION cl_khr_fp16 : enable
    __kernel void k(const __global half4* x, __global half4* y, half s) {
        y[get_global_id(0)] = mad(x[get_global_id(0)], (half4)(s), x[get_global_id(0)]);
    }"""
    x, s = np.random.default_rng(2).standard_normal(256).astype(np.float16), np.float16(0.3)
    y = device.put(np.zeros_like(x))
    scalar = c.c_uint16(int(s.view(np.uint16)))
    assert run_opencl(device, source, device.put(x), y, scalar) == HIP_SUCCESS
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(y.read(), (wide * np.float64(s) + wide).astype(np.float16))


def test_bfloat16_rounds_to_nearest_even(device: Device) -> None:
    source = """
    extern "C" __global__ void k(const float* x, hip_bfloat16* y) {
        y[threadIdx.x] = hip_bfloat16(x[threadIdx.x]);
    }"""
    bits = np.array([0x3F808000, 0x3F818000, 0x3F807FFF, 0x3F808001, 0x7F800000, 0x7F800001])
    x = np.resize(bits, 64).astype(np.uint32).view(np.float32)
    y = device.put(np.zeros(64, np.uint16))
    assert run_hip(device, source, device.put(x), y) == HIP_SUCCESS
    assert [hex(v) for v in y.read()[:6]] == [
        *("0x3f80", "0x3f82", "0x3f80", "0x3f81", "0x7f80"),
        "0x7fc0",  # still a NaN
    ]


def test_opencl_functions(device: Device) -> None:
    source = """
    __kernel void k(const __global float4* x, __global float* y) {
        float4 v = x[get_global_id(0)];
        float4 r = exp(v) + log(fabs(v)) + rsqrt(fabs(v)) + fmax(v, (float4)0.5f) + tanh(v);
        y[get_global_id(0)] = r.x + r.y + r.z + r.w + max(3, 4) + mad24(2, 3, 1) + clz(1u);
    }"""
    x = np.random.default_rng(3).standard_normal((64, 4)).astype(np.float32)
    y = device.put(np.zeros(64, np.float32))
    assert run_opencl(device, source, device.put(x), y) == HIP_SUCCESS
    v = x.astype(np.float64)
    a = np.abs(v)
    r = np.exp(v) + np.log(a) + 1 / np.sqrt(a) + np.maximum(v, 0.5) + np.tanh(v)
    np.testing.assert_allclose(y.read(), r.sum(1) + 4 + 7 + 31, rtol=1e-6)


@pytest.mark.parametrize("run", [run_hip, run_opencl])
def test_arguments_of_all_sizes(device: Device, run: Any) -> None:
    body = "{ y[0] = a + b * 10.0 + h[0] * 100.0 + v.z * 1000.0 + l * 10000.0; }"
    arguments = "{0} double* y, char a, double b, const {0} float* h, float4 v, long l"
    source = {
        run_hip: f'extern "C" __global__ void k({arguments.format("")}) {body}',
        run_opencl: f"__kernel void k({arguments.format('__global')}) {body}",
    }[run]
    y, h = device.put(np.zeros(1)), device.put(np.array([3], np.float32))
    v = (c.c_float * 4)(0, 0, 4, 0)
    given = (y, c.c_int8(1), c.c_double(2), h, v, c.c_int64(5))
    assert run(device, source, *given, block=(1, 1, 1)) == HIP_SUCCESS
    assert y.read()[0] == 54321


def test_an_argument_that_is_a_structure(device: Device) -> None:
    source = """
    struct Pair { float a; float b; };
    extern "C" __global__ void k(float* y, Pair p, int n) { y[0] = p.a + p.b * n; }"""
    y = device.put(np.zeros(1, np.float32))
    pair = (c.c_float * 2)(1, 2)
    assert run_hip(device, source, y, pair, c.c_int(7), block=(1, 1, 1)) == HIP_SUCCESS
    assert y.read()[0] == 15


def test_headers_and_macros(device: Device) -> None:
    source = '#include "sub/v.hpp"\nextern "C" __global__ void k(int* y) { y[0] = V + W; }'
    code = device.compile_hip(source, ["-DW=2", "-O3"], {"sub/v.hpp": "#define V 40"})
    assert device.load(code) == HIP_SUCCESS
    y = device.put(np.zeros(1, np.int32))
    assert device.launch("k", [y], block=(1, 1, 1)) == HIP_SUCCESS
    assert y.read()[0] == 42


def test_a_kernel_that_does_not_compile_is_an_error_with_the_compilers_message(
    device: Device, miopen_emulator: Emulation
) -> None:
    with pytest.raises(CompilationError, match="floaty"):
        device.compile_hip('extern "C" __global__ void k(floaty* x) {}')
    with pytest.raises(CompilationError, match="floaty"):
        device.compile_opencl("__kernel void k(__global floaty* x) {}")
    compiles = [e for e in miopen_emulator.events() if e["event"] == "compile"]
    assert [e["ok"] for e in compiles] == [False, False]
    assert all("floaty" in e["message"] for e in compiles)


def test_a_function_that_nobody_has_is_an_error(device: Device) -> None:
    with pytest.raises(CompilationError, match="nobody_has"):
        device.compile_hip(
            'extern "C" float nobody_has(float);\n'
            'extern "C" __global__ void k(float* x) { *x = nobody_has(*x); }'
        )
    with pytest.raises(CompilationError, match="remquo"):
        device.compile_opencl(
            "__kernel void k(__global float* x, __global int* q) { *x = remquo(*x, 2.0f, q); }"
        )


def test_a_compiled_kernel_is_kept(device: Device, miopen_emulator: Emulation) -> None:
    source = f'extern "C" __global__ void k(int* x) {{ *x = {os.getpid()}; }}'
    first, second = device.compile_hip(source), device.compile_hip(source)
    assert first == second
    events = [e for e in miopen_emulator.events() if e["event"] == "compile"]
    assert [e["cached"] for e in events] == [False, True]


def test_a_kernel_that_a_module_lacks(device: Device) -> None:
    assert device.load(device.compile_hip('extern "C" __global__ void k() {}')) == HIP_SUCCESS
    assert device.function("other")[0] == HIP_NOT_FOUND


@pytest.mark.parametrize("kernels", ["execute", "accept"])
def test_a_kernel_is_one_object_however_often_it_is_asked_for(
    device: Device, monkeypatch: pytest.MonkeyPatch, kernels: str
) -> None:
    """MIOpen asks before each launch of Im2Col, from whatever thread calls it."""
    monkeypatch.setenv("MIOPEN_EMULATOR_KERNELS", kernels)
    kernel = 'extern "C" __global__ void {}(int* x) {{}}'
    code = device.compile_hip(f"{kernel.format('k')} {kernel.format('other')}")
    assert device.load(code) == HIP_SUCCESS
    with ThreadPoolExecutor(8) as pool:
        first = {
            name: {f.value for s, f in pool.map(device.function, [name] * 200)}
            for name in ("k", "other")
        }
    assert {len(handles) for handles in first.values()} == {1}
    assert not first["k"] & first["other"]
    assert device.load(code) == HIP_SUCCESS
    assert device.function("k")[1].value not in first["k"]  # another module's


def test_a_thread_that_has_ended_leaves_nothing_behind(device: Device) -> None:
    """Each that launches gets a stack for faults, and others for its work items."""
    assert device.load(device.compile_hip('extern "C" __global__ void k() {}')) == HIP_SUCCESS

    def launch_from_threads(count: int) -> int:
        for _ in range(count):
            thread = Thread(target=device.launch, args=("k", []))
            thread.start()
            thread.join()
        return allocated_bytes()

    before = launch_from_threads(3)
    assert launch_from_threads(50) - before < 50 * 4096


def test_a_marker_is_never_taken_for_a_kernel(
    device: Device, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MIOPEN_EMULATOR_KERNELS", "accept")
    marker = device.compile_hip('extern "C" __global__ void k() {}')
    assert device.load(marker) == HIP_SUCCESS
    assert device.launch("k", []) == HIP_SUCCESS
    monkeypatch.setenv("MIOPEN_EMULATOR_KERNELS", "execute")
    assert device.launch("k", []) == HIP_INVALID_IMAGE
    assert device.load(marker) == HIP_INVALID_IMAGE
    assert "use another MIOPEN_CUSTOM_CACHE_DIR" in capfd.readouterr().err


WRITE_AT = """
extern "C" __global__ void k(float* x, long i) {
    if(threadIdx.x == 3) x[i] = 1.0f;
}"""
READ_AT = """
extern "C" __global__ void k(float* x, long i, float* y) {
    if(threadIdx.x == 3) y[0] = x[i];
}"""


@pytest.mark.parametrize(
    ("index", "offset", "place"),
    [
        (100, 400, "at byte 400 of"),
        (1000, 4000, "at byte 4000 of"),
        (-1, -4, "4 bytes before the start of"),  # in the page of the allocation
        (-1000, -4000, "4000 bytes before the start of"),  # in the one before
    ],
)
def test_a_write_out_of_bounds_is_found_and_named(
    guarded: Device,
    faults: Any,
    index: int,
    offset: int,
    place: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    x = guarded.put(np.zeros(100, np.float32))
    assert run_hip(guarded, WRITE_AT, x, c.c_long(index)) == HIP_ILLEGAL_ADDRESS
    (fault,) = faults()
    assert (fault["kind"], fault["kernel"]) == ("out of bounds write", "k")
    assert (fault["allocation"], fault["offset"]) == (400, offset)
    assert f", {place} an allocation of 400 bytes\n" in capfd.readouterr().err
    # the process lives, and the next launch is as good as any
    assert guarded.launch("k", [x, c.c_long(99)]) == HIP_SUCCESS
    assert x.read()[99] == 1


def test_a_read_out_of_bounds_is_found_and_named(guarded: Device, faults: Any) -> None:
    x, y = (guarded.put(np.zeros(n, np.float32)) for n in (100, 4))
    status = run_hip(guarded, READ_AT, x, c.c_long(100), y, blocks=(3, 1, 1))
    assert status == HIP_ILLEGAL_ADDRESS
    assert faults()[0]["kind"] == "out of bounds read"
    assert faults()[0]["thread"] == [3, 0, 0]


def test_a_fault_between_barriers_leaves_the_device_usable(guarded: Device, faults: Any) -> None:
    source = """
    extern "C" __global__ void k(float* x, int n) {
        __syncthreads();
        x[threadIdx.x] = threadIdx.x;
        if(threadIdx.x == 40) x[n] = 0;
        __syncthreads();
        x[threadIdx.x] += 1;
    }"""
    x = guarded.put(np.zeros(64, np.float32))
    assert run_hip(guarded, source, x, c.c_int(64)) == HIP_ILLEGAL_ADDRESS
    assert faults()[0]["thread"] == [40, 0, 0]
    assert guarded.launch("k", [x, c.c_int(40)]) == HIP_SUCCESS
    assert x.read()[40] == 1


def test_use_after_free_is_found_and_named(guarded: Device, faults: Any) -> None:
    x, y = (guarded.put(np.zeros(100, np.float32)) for _ in range(2))
    assert x.free() == HIP_SUCCESS
    assert run_hip(guarded, READ_AT, x, c.c_long(7), y) == HIP_ILLEGAL_ADDRESS
    assert (faults()[0]["kind"], faults()[0]["offset"]) == ("read after free", 28)


def test_a_write_into_the_slack_behind_an_allocation_is_found(guarded: Device, faults: Any) -> None:
    x = guarded.put(np.zeros(97, np.float32))  # 12 bytes to the next multiple of 16
    assert run_hip(guarded, WRITE_AT, x, c.c_long(98)) == HIP_ILLEGAL_ADDRESS
    (fault,) = faults()
    assert (fault["kernel"], fault["allocation"], fault["offset"]) == ("k", 388, 392)


def test_memory_that_nobody_wrote_holds_nans_when_guarded(guarded: Device) -> None:
    pointer = c.c_void_p()
    assert guarded.hip.hipMalloc(c.byref(pointer), c.c_size_t(16)) == HIP_SUCCESS
    assert np.isnan(np.frombuffer(c.string_at(pointer, 16), np.float32)).all()


@pytest.mark.parametrize(
    ("body", "kind"),
    [("y[0] = 7 / (n - n);", "division by zero"), ("if(n) __builtin_trap();", "trap")],
)
def test_other_faults_are_launch_failures(
    device: Device, faults: Any, body: str, kind: str
) -> None:
    source = f'extern "C" __global__ void k(volatile int* y, volatile int n) {{ {body} }}'
    y = device.put(np.zeros(1, np.int32))
    assert run_hip(device, source, y, c.c_int(1)) == HIP_LAUNCH_FAILURE
    assert faults()[0]["kind"] == kind


def test_gpu_assembly_is_a_trap_and_not_skipped(device: Device, faults: Any) -> None:
    source = r"""
    extern "C" __global__ void k(float* y) {
        asm volatile("v_add_f32 %0, %1, %2" : "=v"(y[0]) : "v"(1.0f), "v"(2.0f));
    }"""
    assert run_hip(device, source, device.put(np.zeros(1, np.float32))) == HIP_LAUNCH_FAILURE
    assert faults()[0]["kind"] == "trap"


def test_launches_are_logged_with_their_time(device: Device, miopen_emulator: Emulation) -> None:
    source = 'extern "C" __global__ void k(float* x) { x[blockIdx.x] = 1; }'
    x = device.put(np.zeros(6, np.float32))
    assert run_hip(device, source, x, blocks=(3, 2, 1), block=(32, 1, 1)) == HIP_SUCCESS
    (launch,) = (launch.event for launch in miopen_emulator.launches())
    assert launch["ms"] > 0
    assert (launch["grid"], launch["block"]) == ([96, 2, 1], [32, 1, 1])
    assert launch["executed"] is True


def test_a_stack_overflow_is_named(device: Device, faults: Any) -> None:
    source = """
    __device__ __noinline__ int deep(volatile int* x, int n) {
        volatile int here[1000];
        here[n % 1000] = n;
        return n ? deep(x, n - 1) + here[x[0]] : 0;
    }
    extern "C" __global__ void k(volatile int* x, int n) { x[1] = deep(x, n); }"""
    x = device.put(np.zeros(2, np.int32))
    assert run_hip(device, source, x, c.c_int(1000)) == HIP_ILLEGAL_ADDRESS
    assert faults()[0]["kind"] == "stack overflow"


def test_sources_are_kept_where_they_can_be_and_fail_no_kernel(
    device: Device,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    good = tmp_path / "not" / "yet"
    for number, folder in enumerate([good, Path("/proc/kept")]):
        monkeypatch.setenv("MIOPEN_EMULATOR_KEEP_SOURCES", str(folder))
        device.compile_hip(f"// {os.getpid()} {number}\n" + 'extern "C" __global__ void k() {}')
    assert "can't be kept in /proc/kept: " in capfd.readouterr().err
    (kept,) = good.iterdir()
    assert f"// {os.getpid()} 0" in (kept / "source.hip").read_text()
