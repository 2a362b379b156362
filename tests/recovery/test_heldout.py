from dataclasses import asdict

import numpy as np
import pytest
from scipy.special import softmax

from hidldl import hide_labels, make_distributions
from hidldl.recovery.calibration import Calibration
from hidldl.recovery.heldout import MOST_KERNELS, HeldOutGame
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.lostvotes import Votes
from hidldl.recovery.posterior import Draws, weighted_shares
from hidldl.recovery.search import AXES, LEARNS_NOTHING, STRONG_PRIORS, VERY_MANY_LABELS, Choice, search, search_shape
from hidldl.selection import clearly_better, renormalised

ROWS = np.random.default_rng(0).normal(size=400)
ROWS -= ROWS.mean()


def losses_from(surface, n_rows=400):
    """Losses of rows whose mean is about what the surface says, with differences that are clear."""
    return lambda choice: surface(choice) + 0.01 * np.resize(ROWS, n_rows) * hash(choice) / 2**63


def distance(choice, **target):
    return sum(abs(np.log(getattr(choice, name) / value)) for name, value in target.items())


def test_the_search_walks_to_the_valley():
    choice = search_shape(
        losses_from(lambda c: distance(c, nu=16.0, ridge=0.3, width=3.0, prior_rows=4.0)), AXES, Choice(), (True,)
    )
    assert choice == Choice(16.0, 0.3, 3.0, True, 4.0)


def test_a_step_that_shows_only_after_two_is_taken():
    plateau = {1024.0: 0.0, 4096.0: 0.0, 16384.0: -1.0}
    choice = search_shape(losses_from(lambda c: plateau.get(c.nu, 1.0)), AXES, Choice(), (True,))
    assert choice.nu == 16384.0


def test_a_step_that_may_be_chance_does_not_hide_a_valley():
    error = ROWS / ROWS.std(ddof=1) * np.sqrt(len(ROWS))
    levels = {1024.0: 0 * ROWS, 256.0: 0.8 + error, 64.0: -5 + error}
    choice = search_shape(lambda choice: levels.get(choice.nu, 9 + error), AXES, Choice(), (True,))
    assert choice.nu == 64.0


def test_coarse_shares_are_found_behind_a_hill():
    valleys = {1024.0: 1.0, 256.0: 2.0, 64.0: 3.0, 16.0: 0.0}
    losses = losses_from(lambda c: valleys.get(c.nu, 4.0))
    assert search(losses, losses, Choice(), {"n_components"}, 400, 5).nu == 16.0


@pytest.mark.parametrize(("n_votes", "most"), [(2, 4.0), (10, 16.0), (30, 64.0), (None, 65536.0)])
def test_shares_are_not_more_exact_than_their_votes(n_votes, most):
    losses = losses_from(lambda c: distance(c, nu=65536.0), n_rows=800)
    votes = None if n_votes is None else Votes(n_votes)
    choice = search(losses, losses, Choice(), {"standardize", "learn_distance"}, 800, 5, votes=votes)
    assert choice.nu == most


def test_features_as_they_are_get_a_walk_of_their_own():
    def surface(choice):
        return distance(choice, ridge=10.0) if choice.standardize else distance(choice, ridge=0.1) - 1

    choice = search_shape(losses_from(surface), AXES, Choice(), (True, False))
    assert (choice.standardize, choice.ridge) == (False, 0.1)


def test_it_starts_again_from_a_model_that_learns_nothing_where_that_is_better():
    def surface(choice):
        nothing = choice.nu == LEARNS_NOTHING["nu"] and choice.ridge == LEARNS_NOTHING["ridge"]
        return -10.0 if nothing else distance(choice, nu=1024.0)

    choice = search_shape(losses_from(surface), AXES, Choice(), (True,))
    assert (choice.nu, choice.ridge) == (LEARNS_NOTHING["nu"], LEARNS_NOTHING["ridge"])


def test_given_parameters_are_no_axis():
    axes = {name: values for name, values in AXES.items() if name != "nu"}
    choice = search_shape(losses_from(lambda c: distance(c, ridge=1.0, nu=4.0)), axes, Choice(nu=300.0), (True,))
    assert (choice.nu, choice.ridge) == (300.0, 1.0)


def better_by(losses):
    return lambda lacking, best, votes: clearly_better(losses(lacking), losses(best))


@pytest.mark.parametrize("can_lack", [True, False])
def test_rows_may_lack_labels_if_that_is_better_and_possible(can_lack):
    asked = []

    def may_lack(best):
        asked.append(best.nu)
        return can_lack

    losses = losses_from(lambda c: distance(c, nu=16.0, ridge=1.0) - 20 * c.absent_labels * (c.ridge == 0.3))
    given = {"standardize", "learn_distance"}
    choice = search(losses, losses, Choice(), given, 800, 5, can_lack=may_lack, lacks=better_by(losses))
    assert asked == [16.0]
    assert (choice.absent_labels, choice.nu, choice.ridge) == ((True, 65536.0, 0.3) if can_lack else (False, 16.0, 1.0))
    assert not choice.absent_labels or choice.n_components == 1


def test_rows_have_all_labels_where_lacking_some_is_no_better_or_the_user_says_so():
    losses = losses_from(lambda c: distance(c, nu=16.0, ridge=1.0) - 20 * c.absent_labels * (c.ridge == 0.3))
    given = {"standardize", "learn_distance"}
    how = {"can_lack": lambda best: True, "lacks": better_by(losses)}
    assert not search(losses, losses, Choice(), {*given, "absent_labels"}, 800, 5, **how).absent_labels
    worse = losses_from(lambda c: distance(c, nu=16.0, ridge=1.0) + c.absent_labels)
    assert not search(worse, worse, Choice(), given, 800, 5, **how | {"lacks": better_by(worse)}).absent_labels


def test_absent_labels_are_chosen_by_losses_of_their_own():
    losses = losses_from(lambda c: distance(c, nu=16.0, ridge=1.0))
    fair = losses_from(lambda c: distance(c, nu=16.0, ridge=0.1))
    how = {"can_lack": lambda best: True, "fair_losses": fair, "lacks": lambda lacking, best, votes: True}
    choice = search(losses, losses, Choice(), {"standardize", "learn_distance"}, 800, 5, **how)
    assert (choice.absent_labels, choice.ridge) == (True, 0.1)


def test_the_number_of_kinds_with_the_lowest_loss_is_chosen():
    losses = losses_from(lambda c: distance(c, ridge=1.0) + abs(c.n_components - 4), n_rows=400)
    given = {"standardize", "learn_distance"}
    assert search(losses, losses, Choice(), given, 400, 5) == Choice(ridge=1.0, n_components=4)
    assert search(losses, losses, Choice(n_components=2), {*given, "n_components"}, 400, 5).n_components == 2


@pytest.mark.parametrize(("errors_lower", "number"), [(1.5, 1), (2.5, 2)])
def test_more_kinds_than_one_need_good_evidence(errors_lower, number):
    error = ROWS / ROWS.std(ddof=1) * np.sqrt(len(ROWS))
    levels = {1: 0 * ROWS, 2: error - errors_lower, 4: error + 9.0}
    given = set(asdict(Choice())) - {"n_components"}

    def losses(choice):
        return levels[choice.n_components]

    assert search(losses, losses, Choice(), given, 400, 5).n_components == number


@pytest.mark.parametrize(
    ("start", "learned", "best_ridge"), [(1.0, True, 10.0), (0.3, True, 3.0), (3.0, False, 3.0), (100.0, False, 100.0)]
)
def test_distances_are_learned_where_features_tell_much(start, learned, best_ridge):
    losses = losses_from(lambda c: distance(c, ridge=10.0 * start) if c.learn_distance else distance(c, ridge=start))
    chosen = search(losses, losses, Choice(ridge=start), set(asdict(Choice())) - {"learn_distance", "ridge"}, 400, 5)
    assert (chosen.learn_distance, chosen.ridge) == (learned, best_ridge)


@pytest.mark.parametrize(("errors_higher", "learned"), [(-1.0, True), (0.5, True), (1.5, False)])
def test_learned_distances_need_no_proof_but_must_not_be_clearly_worse(errors_higher, learned):
    error = ROWS / ROWS.std(ddof=1) * np.sqrt(len(ROWS))
    given = set(asdict(Choice())) - {"learn_distance"}

    def losses(choice):
        return errors_higher + error if choice.learn_distance else 0 * ROWS

    assert search(losses, losses, Choice(ridge=1.0), given, 400, 5).learn_distance == learned


def test_many_kinds_are_tried_only_where_fewer_are_not_enough():
    played = set()

    def losses(choice):
        played.add(choice.n_components)
        return abs(choice.n_components - 2) + 0.01 * ROWS * hash(choice) / 2**63

    given = set(asdict(Choice())) - {"n_components"}
    assert search(losses, losses, Choice(), given, 400, 5).n_components == 2
    assert played == {1, 2, 4}


def test_many_kinds_are_tried_where_fewer_may_be_as_good():
    error = ROWS / ROWS.std(ddof=1) * np.sqrt(len(ROWS))
    levels = {1: 0 * ROWS, 2: 3 + error, 4: 0.5 + error, 8: -3 + error}
    given = set(asdict(Choice())) - {"n_components"}

    def losses(choice):
        return levels[choice.n_components]

    assert search(losses, losses, Choice(), given, 400, 5).n_components == 8


def test_numbers_of_kinds_are_chosen_by_distances():
    losses, distances = (losses_from(lambda c, best=best: abs(c.n_components - best)) for best in (4, 2))
    given = set(asdict(Choice())) - {"n_components"}
    assert search(losses, distances, Choice(), given, 400, 5).n_components == 2


@pytest.mark.parametrize(
    ("n_rows", "n_labels", "most"), [(60, 5, 1), (100, 5, 2), (200, 5, 4), (400, 5, 8), (400, 12, 4)]
)
def test_a_kind_needs_some_rows_and_many_labels_take_long(n_rows, n_labels, most):
    losses = losses_from(lambda c: -c.n_components, n_rows=n_rows)
    given = set(asdict(Choice())) - {"n_components"}
    assert search(losses, losses, Choice(), given, n_rows, n_labels).n_components == most


@pytest.mark.parametrize(("n_rows", "chosen"), [(900, 500), (1000, 1000), (20_000, 1000), (20_001, 500)])
def test_more_landmarks_are_tried_where_they_can_help_and_are_affordable(n_rows, chosen):
    losses = losses_from(lambda c: -c.n_landmarks)
    given = set(asdict(Choice())) - {"n_landmarks"}
    assert search(losses, losses, Choice(ridge=3.0), given, n_rows, 5).n_landmarks == chosen
    assert search(losses, losses, Choice(ridge=3.0), {*given, "n_landmarks"}, n_rows, 5).n_landmarks == 500


def test_smooth_means_need_no_more_landmarks():
    losses = losses_from(lambda c: -c.n_landmarks)
    assert (
        search(losses, losses, Choice(ridge=10.0), set(asdict(Choice())) - {"n_landmarks"}, 1000, 5).n_landmarks == 500
    )


def test_the_order_of_labels_counts_where_there_are_many():
    losses = losses_from(lambda c: distance(c, prior_rows=16.0) - 10.0 * c.ordered)
    given = {"nu", "ridge", "width", "standardize", "n_components", "n_landmarks"}
    chosen = search(losses, losses, Choice(), given, 100, 40)
    assert (chosen.ordered, chosen.prior_rows) == (True, 16.0)
    assert 16.0 in STRONG_PRIORS
    assert not search(losses, losses, Choice(), given, 100, 10).ordered
    assert not search(losses, losses, Choice(), {*given, "ordered"}, 100, 40).ordered


@pytest.fixture(scope="module")
def game():
    data = make_distributions(n_rows=300, n_features=3, n_labels=5, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.5, random_state=0)
    rng = np.random.default_rng(0)
    options = {"row_weights": np.ones(300), "max_iter": 50, "tol": 3e-3}
    return HeldOutGame(data.features, D_obs, observed, **options, rng=rng)


@pytest.fixture(scope="module")
def table_of_many_rows():
    data = make_distributions(n_rows=1000, n_features=3, n_labels=7, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.4, random_state=0)
    options = {"row_weights": np.ones(1000), "max_iter": 50, "tol": 3e-3, "rng": np.random.default_rng(0)}
    return HeldOutGame(data.features, D_obs, observed, **options)


def test_weights_bring_the_labels_of_rows_in_the_game_nearer_to_those_of_the_table():
    data = make_distributions(n_rows=3000, n_features=3, n_labels=8, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.5, random_state=0)
    options = {"row_weights": np.ones(3000), "max_iter": 50, "tol": 3e-3, "rng": np.random.default_rng(0)}
    game = HeldOutGame(data.features, D_obs, observed, **options)
    left = (game.observed.sum(axis=1) - game.n_lost)[game.in_play]
    in_effect = np.average(left, weights=game.play_weights[game.in_play])
    in_table = observed.sum(axis=1).mean()
    assert left.mean() + 0.4 * (in_table - left.mean()) < in_effect < in_table
    few = HeldOutGame(data.features[:100], D_obs[:100], observed[:100], **(options | {"row_weights": np.ones(100)}))
    assert (few.play_weights == 1).all()


def test_with_very_many_labels_order_comes_first_and_kinds_end_with_the_first_that_is_no_better():
    played = []

    def losses(choice):
        played.append(choice)
        surface = distance(choice, prior_rows=4.0) + 2 * (not choice.ordered) + choice.n_components
        return surface + 0.01 * ROWS * hash(choice) / 2**63

    chosen = search(losses, losses, Choice(), {"standardize", "nu", "ridge", "width"}, 400, VERY_MANY_LABELS)
    assert chosen == Choice(ordered=True, prior_rows=4.0)
    assert all(choice.ordered or choice.prior_rows == 1 for choice in played)
    assert max(choice.n_components for choice in played) == 2


def test_rows_are_judged_by_models_that_did_not_see_them(game, monkeypatch):
    fitted = []

    def remember(features, shares, observed, *args, **options):
        fitted.append(shares)
        return original(features, shares, observed, *args, **options)

    import hidldl.recovery.heldout as heldout

    original = heldout.fit_model
    monkeypatch.setattr(heldout, "fit_model", remember)
    game.losses(Choice(nu=64.0))
    assert len(fitted) == 4
    for fold, shares in enumerate(fitted):
        assert np.array_equal(shares, game.shares[game.folds != fold])


@pytest.mark.usefixtures("full_calibration")
def test_of_many_rows_two_folds_of_three_are_judged():
    data = make_distributions(n_rows=1200, n_features=3, n_labels=5, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.5, random_state=0)
    options = {"row_weights": np.ones(1200), "max_iter": 50, "tol": 3e-3, "rng": np.random.default_rng(0)}
    game = HeldOutGame(data.features, D_obs, observed, **options)
    assert np.bincount(game.folds).tolist() == [400, 400, 400]
    assert set(game.folds[game.in_play]) == {0, 1}
    assert len(game.losses(Choice())) == game.in_play.sum() > 600
    # Two folds are enough to see that the intervals are neither far too narrow nor far too wide.
    assert 0.5 < game.calibrate(Choice(), 0).spread < 2


def test_candidates_are_fitted_closely_only_where_zeros_are_in_doubt(game, monkeypatch):
    import hidldl.recovery.heldout as heldout

    tols = []

    def remember(*args, **options):
        tols.append(options["tol"])
        return original(*args, **options)

    original = heldout.fit_model
    monkeypatch.setattr(heldout, "fit_model", remember)
    game.losses(Choice(nu=16.0))
    monkeypatch.setattr(game, "presence", np.where(game.observed, 0.9, 0.0))
    game.losses(Choice(nu=32.0))
    game.forget()
    assert tols == [heldout.GAME_TOL] * 4 + [game.tol] * 4


def test_progress_is_shown_once_for_each_choice(game):
    calls = []
    for nu in (16.0, 32.0, 16.0):
        game.losses(Choice(nu=nu), progress=lambda *call: calls.append(call))
    game.forget()
    assert calls == [(n, None, f"choosing parameters, trials: {n}") for n in (1, 2)]


def test_better_parameters_lose_less(game):
    assert game.losses(Choice(ridge=0.3)).mean() < game.losses(Choice(ridge=10000.0)).mean() / 2


def test_rows_with_many_labels_lose_several(table_of_many_rows):
    game = table_of_many_rows
    lost = [(game.observed & ~mask).sum(axis=1) for mask in game.masks]
    assert max(counts.max() for counts in lost) == 2
    for counts in lost:
        playing = counts > 0
        assert (counts[playing] == np.maximum(game.observed.sum(axis=1)[playing] // 3, 1)).all()


def test_the_kernels_that_were_used_last_are_kept(game):
    game.forget()
    first = game.kernel(Choice(width=1.0))
    for width in (3.0, 10.0, 0.3, 0.1):
        game.kernel(Choice(width=width))
        assert game.kernel(Choice(width=1.0)) is first
    assert len(game._kernels) == MOST_KERNELS
    game.forget()


def test_both_measures_of_the_game_count_alike(game):
    game._distance_weight = None
    losses, distances = game.losses(Choice()), game.distances(Choice())
    divergences = losses - distances * game._distance_weight
    assert (divergences >= 0).all()
    assert divergences.mean() == pytest.approx(game._distance_weight * distances.mean())
    weight = game._distance_weight
    game.losses(Choice(ridge=1000.0))
    assert game._distance_weight == weight


def test_rows_with_more_votes_are_followed_more_closely_in_the_game(game):
    (model, fold), *_ = game._models(Choice(nu=64.0), map, game.tol)
    features = game.kernel(Choice()).held_out(fold, Choice().ridge)[:20]
    here = np.flatnonzero(game.folds == fold)[:20]
    shares, observed = game.shares[here], game.observed[here]
    gaps = []
    for weight in (0.1, 1.0, 10.0):
        rows = model.prior(features, shares, observed, np.full(20, weight))
        model.condition(rows)
        z = rows.mean + rows.scale[:, None] * (rows.weights[0] @ model.estimates.covariances[0])
        gaps.append(np.abs(renormalised(softmax(z, axis=1), observed) - shares).mean())
    assert gaps[0] > 1.5 * gaps[1] > 2 * gaps[2]


def test_too_few_rows_calibrate_nothing():
    D_obs = np.array([[0.5, 0.5, 0], [0, 0.4, 0.6], [1.0, 0, 0]])
    rng = np.random.default_rng(0)
    options = {"row_weights": np.ones(3), "max_iter": 5, "tol": 1e-2}
    few = HeldOutGame(np.eye(3), D_obs, D_obs > 0, **options, rng=rng)
    assert not few.has_enough_rows
    assert few.calibrate(Choice(), 0) == Calibration()


def labels_of(features):
    """No labels at all."""
    return np.zeros((len(features), 5)), np.zeros((len(features), 5), dtype=bool)


@pytest.mark.parametrize("zeros", [True, False])
def test_draws_of_a_row_of_which_nothing_is_known_follow_its_prior(game, zeros):
    (model, fold), *_ = game._models(Choice(nu=1024.0), map, game.tol)
    features = game.kernel(Choice()).held_out(fold, Choice().ridge)[:4]
    rows = model.prior(features, *labels_of(features))
    model.condition(rows)
    rng = np.random.default_rng(0)
    D, weights = weighted_shares(model, rows, slice(0, 4), Draws.shared(rng, 4000, 5), zeros, rng)
    assert np.allclose(weights, 1 / 4000)
    assert np.allclose(D.sum(axis=1), 1)
    assert not np.allclose(D.mean(axis=2), 0.2, atol=0.02)
    logs = np.log(np.maximum(D, 1e-9)).mean(axis=2)
    if not zeros:
        centred = logs - logs.mean(axis=1, keepdims=True)
        assert np.allclose(centred, rows.mean - rows.mean.mean(axis=1, keepdims=True), atol=0.1)


def test_a_new_rows_prior_is_wider_by_the_uncertainty_of_its_mean(game):
    (model, fold), *_ = game._models(Choice(), map, game.tol)
    known = game.kernel(Choice()).fitted(fold, Choice().ridge)
    far = 30 * known[:5]
    near_scale, far_scale = (model.prior(rows, *labels_of(rows)).scale for rows in (known, far))
    assert (near_scale > 1).all()
    assert far_scale.min() > near_scale.max()


@pytest.mark.parametrize("ridge", [0.03, 10.0])
def test_rows_that_are_held_out_have_the_leverage_of_new_rows(game, ridge):
    kernel, fold = game.kernel(Choice()), 1
    others, (_, features) = game.folds != fold, game.plain_features(Choice())
    plain = Ridge.of(features[others], ridge)
    principal = kernel.regression(fold, ridge)
    for at, components in ((others, kernel.fitted(fold, ridge)), (~others, kernel.held_out(fold, ridge))):
        assert np.allclose(principal.leverage(components), plain.leverage(features[at]), rtol=0.01, atol=0.02)


def test_where_few_of_many_rows_can_lose_a_label_all_folds_are_judged():
    data = make_distributions(n_rows=1200, n_features=3, n_labels=4, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.8, random_state=0)
    options = {"row_weights": np.ones(1200), "max_iter": 50, "tol": 3e-3, "rng": np.random.default_rng(0)}
    game = HeldOutGame(data.features, D_obs, observed, **options)
    assert set(game.folds[game.in_play]) == {0, 1, 2}
    assert np.array_equal(game.in_play, observed.sum(axis=1) > 1)
