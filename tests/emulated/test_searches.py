"""Searches on a caller's own buffers, by MIOpen's calls: what the trial launches leave behind."""

from __future__ import annotations

import numpy as np
import pytest

from hipdnn_miopen_emulator.pytest_plugin import Emulation
from hipdnn_miopen_provider.native import TuningPolicy, copy_to_device, copy_to_host, hip
from tests.native.problems import batchnorm_case, fresh_handle

DIMS = (4, 3, 14, 14)


@pytest.mark.miopen_emulator
@pytest.mark.parametrize("policy", [TuningPolicy.NONE, TuningPolicy.SEARCH_DB_UPDATE])
def test_trial_launches_leave_running_statistics_alone(
    miopen_emulator: Emulation, policy: TuningPolicy
) -> None:
    """In place, as frameworks call it: updated once, however many kernels were tried."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(DIMS, np.float32)
    with batchnorm_case(DIMS) as case, fresh_handle(policy) as handle:
        copy_to_device(case.x, x)
        for memory, value in ((case.mean, 3.0), (case.variance, 2.0), (case.scale, 1.0)):
            copy_to_device(memory, np.full(DIMS[1], value, np.float32))
        case.bias.fill(0)
        case.train(handle)
        hip.synchronize_device()
        mean, variance = np.empty(DIMS[1], np.float32), np.empty(DIMS[1], np.float32)
        copy_to_host(mean, case.mean)
        copy_to_host(variance, case.variance)
    launches = [each for each in miopen_emulator.launches() if "BatchNorm" in each.kernel]
    assert all(each.executed for each in launches)
    assert (len(launches) > 3) is (policy is not TuningPolicy.NONE)
    batch = x.astype(np.float64)
    np.testing.assert_allclose(mean, 2.7 + 0.1 * batch.mean((0, 2, 3)), rtol=1e-6)
    np.testing.assert_allclose(variance, 1.8 + 0.1 * batch.var((0, 2, 3), ddof=1), rtol=1e-6)
