from dataclasses import replace

import numpy as np

from hidldl.recovery.findings import describe, describe_kinds
from hidldl.recovery.hidingcurve import HidingCurve
from hidldl.recovery.latent import Estimates
from hidldl.recovery.lostvotes import Votes
from hidldl.recovery.zerorates import ZeroRates

NAMES = ["joy", "fear", "anger"]


def estimates(offsets, shares, curve=None):
    k, m = np.shape(offsets)
    intercept = np.concatenate([np.zeros(m), shares])
    return Estimates(np.stack([np.eye(m)] * k), np.array(offsets), intercept, np.zeros((0, m + k)), curve)


def test_kinds_are_told_by_what_they_have_more_and_less_of():
    found = estimates([[0.3, -0.3, 0.0], [-0.9, 0.9, 0.0]], [0.75, 0.25])
    assert describe(found, NAMES) == [
        "rows are of 2 kinds: kind 1 (75 %) with more joy, less fear; kind 2 (25 %) with more fear, less joy"
    ]
    assert describe_kinds(found, NAMES) == ["with more joy, less fear", "with more fear, less joy"]


def test_kinds_that_differ_in_how_they_vary_are_told_too():
    assert describe_kinds(estimates(np.zeros((2, 3)), [0.5, 0.5]), NAMES)[0].startswith("near the average")


def test_one_kind_and_labels_that_are_hidden_alike_are_no_finding():
    assert describe(estimates(np.zeros((1, 3)), [1.0]), NAMES) == []
    assert describe_kinds(estimates(np.zeros((1, 3)), [1.0]), NAMES) == []


def test_the_slope_of_hiding_is_told_as_odds():
    (sentence,) = describe(estimates(np.zeros((1, 3)), [1.0], HidingCurve(1.0, 2.0, zeros=False)), NAMES)
    assert "small shares are overlooked more" in sentence
    assert "when a share doubles, the odds that it is handed in grow 4.0-fold" in sentence
    assert describe(estimates(np.zeros((1, 3)), [1.0], HidingCurve(1.0, -2.0, zeros=False)), NAMES) == []


def test_votes_of_complete_rows_are_a_finding():
    found = replace(estimates(np.zeros((1, 3)), [1.0]), votes=Votes(10))
    (sentence,) = describe(found, NAMES)
    assert "complete rows are shares of 10 votes" in sentence
    unknown = replace(found, zeros=ZeroRates.first(3, None, None))
    assert describe(unknown, NAMES)[-1] == sentence
    assert len(describe(unknown, NAMES)) == 2
