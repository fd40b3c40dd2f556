"""What the compile driver does to kernels' sources, as text; the rest is in test_kernels."""

from __future__ import annotations

import re

import pytest

from hipdnn_miopen_emulator.compiler.hip import find_kernels, for_the_host
from hipdnn_miopen_emulator.compiler.opencl import with_entries


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('extern "C" __global__ void k(float* x) {}', ["k"]),
        ("__global__ __attribute__((amdgpu_waves(1, (2)))) void\n# 7 \"k.cpp\"\nk() {}", ["k"]),
        ("__global__ void __attribute__((x)) a();\n__global__ void a() {} __global__ void b() {}",
         ["a", "b"]),
        ("template <class T, int n>\n__global__ void t(T* x) {} __global__ void k() {}", ["k"]),
        ("void not_global(int x) {}", []),
    ],
)  # fmt: skip
def test_kernels_are_found(text: str, names: list[str]) -> None:
    assert find_kernels(text) == names


def test_what_the_host_has_no_notion_of_is_rewritten() -> None:
    text = for_the_host(
        'asm volatile("s_barrier"); float f() __asm("llvm.amdgcn.mfma.x");\n'
        "extern __shared__ unsigned char buffer[];"
    )
    assert 'EMULATOR_GPU_ASSEMBLY("s_barrier");' in text
    assert '__asm("emulator.unsupported.mfma.x")' in text  # a name, no instruction: it stays
    assert re.search(r"unsigned char \*const buffer = .*dynamic_shared\);", text)


IR = """\
@k.tile = internal global [64 x float] undef, align 16
@table.k = internal global [2 x i32] undef
define dso_local spir_kernel void @k(ptr noundef align 4 %0, <4 x float> noundef %1, \
ptr noundef byval(%struct.S) align 4 %2, i8 noundef signext %3) #7 !kernel_arg_type !8 {
}
"""


def test_an_opencl_kernel_gets_an_entry_and_local_memory_for_each_thread() -> None:
    text = with_entries(IR)
    assert "@k.tile = internal thread_local global [64 x float]" in text
    assert "@table.k = internal global" in text  # not a kernel's
    assert "%arguments.k = type { ptr, <4 x float>, %struct.S, i8 }" in text
    call = re.search(r"call spir_kernel void @k\((.*)\)", text)
    assert call is not None
    assert call[1] == (
        "ptr noundef align 4 %a0, <4 x float> noundef %a1, "
        "ptr noundef byval(%struct.S) align 4 %p2, i8 noundef signext %a3"
    )
    assert "define internal void @call.k(ptr %buffer) #7 {" in text
