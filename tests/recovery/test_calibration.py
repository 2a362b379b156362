"""The calibration of intervals, on coverages with known answers."""

import numpy as np
import pytest

from hidldl.recovery.calibration import LARGEST_TAILS, SPREADS, Calibration, calibrated


def spread_of(coverage):
    return calibrated(lambda calibration: coverage(calibration.spread)).spread


def test_the_spread_is_the_smallest_that_holds_the_level():
    assert spread_of(lambda spread: spread / (spread + 0.2)) == pytest.approx(1.8, rel=0.2)
    assert spread_of(lambda spread: 1.0) == pytest.approx(SPREADS[0], rel=0.2)
    assert spread_of(lambda spread: 0.5 * spread / (spread + 1)) == pytest.approx(SPREADS[1], rel=0.2)


@pytest.mark.parametrize("peak", [0.89, 0.93])
def test_a_spread_that_is_too_wide_is_not_taken_for_one_that_is_too_narrow(peak):
    assert 0.6 < spread_of(lambda spread: peak - 0.1 * np.log(spread / 1.3) ** 2) < 1.7


def test_tails_make_up_for_a_spread_that_has_a_least():
    def coverage(calibration):
        low, high = calibration.levels(0.9)
        return 0.95 + 0.5 * (high - low - 0.9)

    found = calibrated(coverage, least_spread=0.5)
    assert found.spread == 0.5
    assert coverage(found) == pytest.approx(0.9, abs=0.01)
    assert calibrated(lambda calibration: 0.99, least_spread=0.5).tails == pytest.approx(LARGEST_TAILS, rel=0.2)
    assert calibrated(lambda calibration: calibration.spread / 2, least_spread=0.5).tails == 1


@pytest.mark.parametrize("tails", [1.0, 2.5])
def test_levels_grow_with_the_level_and_stay_in_order(tails):
    ends = np.array([Calibration(tails=tails).levels(level) for level in np.linspace(0.01, 0.99, 50)])
    assert (np.diff(ends[:, 0]) < 0).all()
    assert (np.diff(ends[:, 1]) > 0).all()
    assert np.allclose(ends.sum(axis=1), 1)
    if tails == 1:
        assert np.allclose(ends[:, 1] - ends[:, 0], np.linspace(0.01, 0.99, 50))
