import numpy as np
import pytest

from hidldl import hide_labels, make_distributions
from hidldl.recovery.heldout import AXES, LEARNS_NOTHING, Choice, HeldOutGame, search
from hidldl.recovery.posterior import Draws, draw_shares

ROWS = np.random.default_rng(0).normal(size=400)


def losses_from(surface):
    """Losses of 400 rows whose mean is what the surface says, with differences that are clear."""
    return lambda choice: surface(choice) + 0.01 * ROWS * hash(choice) / 2**63


def distance(choice, **target):
    return sum(abs(np.log(getattr(choice, name) / value)) for name, value in target.items())


def test_the_search_walks_to_the_valley():
    choice = search(
        losses_from(lambda c: distance(c, nu=16.0, ridge=0.3, width=3.0, prior_rows=4.0)), AXES, Choice(), (True,)
    )
    assert choice == Choice(16.0, 0.3, 3.0, True, 4.0)


def test_a_step_that_shows_only_after_two_is_taken():
    plateau = {1024.0: 0.0, 4096.0: 0.0, 16384.0: -1.0}
    choice = search(losses_from(lambda c: plateau.get(c.nu, 1.0)), AXES, Choice(), (True,))
    assert choice.nu == 16384.0


def test_features_as_they_are_get_a_walk_of_their_own():
    def surface(choice):
        return distance(choice, ridge=10.0) if choice.standardize else distance(choice, ridge=0.1) - 1

    choice = search(losses_from(surface), AXES, Choice(), (True, False))
    assert (choice.standardize, choice.ridge) == (False, 0.1)


def test_it_starts_again_from_a_model_that_learns_nothing_where_that_is_better():
    def surface(choice):
        nothing = choice.nu == LEARNS_NOTHING["nu"] and choice.ridge == LEARNS_NOTHING["ridge"]
        return -10.0 if nothing else distance(choice, nu=1024.0)

    choice = search(losses_from(surface), AXES, Choice(), (True,))
    assert (choice.nu, choice.ridge) == (LEARNS_NOTHING["nu"], LEARNS_NOTHING["ridge"])


def test_given_parameters_are_no_axis():
    axes = {name: values for name, values in AXES.items() if name != "nu"}
    choice = search(losses_from(lambda c: distance(c, ridge=1.0, nu=4.0)), axes, Choice(nu=300.0), (True,))
    assert (choice.nu, choice.ridge) == (300.0, 1.0)


@pytest.fixture(scope="module")
def game():
    data = make_distributions(n_rows=300, n_features=3, n_labels=5, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.5, random_state=0)
    rng = np.random.default_rng(0)
    return HeldOutGame(data.features, D_obs, observed, n_landmarks=50, max_iter=50, tol=3e-3, rng=rng)


def test_rows_are_judged_by_models_that_did_not_see_them(game, monkeypatch):
    fitted = []

    def remember(features, shares, observed, *args, **options):
        fitted.append(shares)
        return original(features, shares, observed, *args, **options)

    import hidldl.recovery.heldout as heldout

    original = heldout.fit_latent_model
    monkeypatch.setattr(heldout, "fit_latent_model", remember)
    game.losses(Choice(nu=64.0))
    assert len(fitted) == 4
    for fold, shares in enumerate(fitted):
        assert np.array_equal(shares, game.shares[game.folds != fold])


def test_better_parameters_lose_less(game):
    assert game.losses(Choice(ridge=0.3)).mean() < game.losses(Choice(ridge=10000.0)).mean() / 2


def test_too_few_rows_calibrate_nothing():
    D_obs = np.array([[0.5, 0.5, 0], [0, 0.4, 0.6], [1.0, 0, 0]])
    rng = np.random.default_rng(0)
    few = HeldOutGame(np.eye(3), D_obs, D_obs > 0, n_landmarks=5, max_iter=5, tol=1e-2, rng=rng)
    assert not few.has_enough_rows
    assert few.calibrate(Choice(), 0) == 1.0


@pytest.mark.parametrize("zeros", [True, False])
def test_draws_of_a_row_of_which_nothing_is_known_follow_its_prior(game, zeros):
    (model, _), *_ = game._models(Choice(nu=1024.0), map)
    features = game._kernel(Choice()).features[:4]
    nothing = np.zeros((4, 5))
    rows = model.condition(features, nothing, nothing.astype(bool))
    rng = np.random.default_rng(0)
    D = draw_shares(model, rows, slice(None), Draws.shared(rng, 4000, 5), zeros, rng)
    assert np.allclose(D.sum(axis=1), 1)
    assert not np.allclose(D.mean(axis=2), 0.2, atol=0.02)
    logs = np.log(np.maximum(D, 1e-9)).mean(axis=2)
    if not zeros:
        centred = logs - logs.mean(axis=1, keepdims=True)
        assert np.allclose(centred, rows.mean - rows.mean.mean(axis=1, keepdims=True), atol=0.1)


def test_a_new_rows_prior_is_wider_by_the_uncertainty_of_its_mean(game):
    (model, fold), *_ = game._models(Choice(), map)
    features = game._kernel(Choice()).features
    known, far = features[game.folds != fold], 30 * features[:5]
    _, near_scale = model.prior(known)
    _, far_scale = model.prior(far)
    assert (near_scale > 1).all()
    assert far_scale.min() > near_scale.max()
