"""Fits of random problems, and programs that are killed at random times, as cases of ``fuzz_targets``."""

import io
import json
import os
import re
import shutil
import signal
import tempfile
import time
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import sparse

import hidldl
from estimators import ESTIMATORS, LEARNERS, seeded
from hidldl.recovery.acts import ACTS
from hidldl.replacing import PREFIX
from table_files import frame

SEEDS = [b'{"seed": 0}']
PATIENCE_S = 50.0


def drawn_seed(content: bytes, rng: np.random.Generator, others: list[bytes]) -> bytes:
    """A case is a number from which all else follows."""
    return json.dumps({"seed": int(rng.integers(2**62))}).encode()


def fit_once(path: Path) -> None:
    """Any method with any settings on a small table: on the simplex, in proportion, and the same once more."""
    rng = np.random.default_rng(json.loads(path.read_bytes())["seed"])
    kind = ESTIMATORS[rng.integers(len(ESTIMATORS))]
    X, D, D_obs, observed = _problem(rng)
    model = seeded(kind, **_settings(rng, len(D)))
    arguments = (D,) if kind in LEARNERS else _as_handed_in(rng, D_obs, observed)
    before = [_numbers(each).copy() for each in (X, *arguments)]
    found = _results(model, X, arguments, kind in LEARNERS)
    for rows in found:
        assert np.isfinite(rows).all(), "not finite"
        assert (rows >= 0).all(), "negative shares"
        assert np.allclose(rows.sum(axis=1), 1, rtol=0, atol=1e-5 if rows.dtype == np.float32 else 1e-9), "sums"
    if kind not in LEARNERS:
        _check_recovered(model, found[0], D_obs, observed)
    again = _results(model, X, arguments, kind in LEARNERS)
    assert all(map(np.array_equal, found, again)), "not the same once more"
    assert all(np.array_equal(_numbers(a), b, equal_nan=True) for a, b in zip((X, *arguments), before, strict=True))


def _problem(rng):
    """Features of several kinds, shares with zeros in them, and what is left of these; every label is seen."""
    n_rows, n_features, n_labels = rng.integers((4, 1, 2), (40, 6, 8))
    X = rng.normal(size=(n_rows, n_features)) * 10 ** rng.uniform(-3, 3)
    X[:, 1:][:, rng.random(n_features - 1) < 0.1] = 1.0
    X[2:][rng.random(n_rows - 2) < 0.1] = X[0]
    D = rng.dirichlet(np.full(n_labels, rng.choice([0.1, 1.0, 30.0])), n_rows)
    D[rng.random(D.shape) < rng.choice([0, 0.3])] = 0
    D[:, 0] += D.sum(axis=1) == 0
    D[:n_labels] += np.eye(n_labels)[:n_rows]
    D /= D.sum(axis=1, keepdims=True)
    D_obs, observed = hidldl.hide_labels(D, rng.uniform(0, 0.9), rng, mechanism=rng.choice(["uniform", "degree"]))
    unseen = ~(observed & (D > 0)).any(axis=0)
    observed |= unseen
    D_obs = np.where(observed, D, 0)
    D_obs /= D_obs.sum(axis=1, keepdims=True)
    if rng.random() < 0.2:
        X, D, D_obs = X.astype(np.float32), D.astype(np.float32), D_obs.astype(np.float32)
    if rng.random() < 0.1:
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_features)])
    return X, D, D_obs, observed


def _as_handed_in(rng, D_obs, observed):
    """With a mask, or with NaN, in an array or in a table. Without any NaN, zeros would need a mask."""
    if rng.random() < 0.5 or observed.all():
        return D_obs, observed
    gaps = np.where(observed, D_obs, np.nan).astype(D_obs.dtype)
    return (pd.DataFrame(gaps).rename(columns=str) if rng.random() < 0.3 else gaps,)


def _settings(rng, n_rows):
    """Settings of all methods; each takes those that it has."""
    ranges = {
        **{"alpha": (-4, 2), "rho": (-0.5, 1), "sigma": (-1, 1), "step": (-3, -1.5), "nu": (0, 5), "ridge": (-2, 3)},
        **{"width": (-1, 1), "prior_rows": (-1, 2), "l1": (-5, 0), "l2": (-3, 1), "l3": (-3, 1), "beta": (-4, 0)},
    }
    words = {
        **{"solver": ["algorithm1", "exact"], "hiding": ["uniform", "degree"], "estimate": ["mean", "relative", *ACTS]},
        **{
            "standardize": [True, False],
            "ordered": [True, False],
            "n_components": [1, 2, min(3, n_rows // 2)],
            "n_groups": [1, 2, 5],
        },
        **{"n_draws": [2, 5, 16], "max_iter": [1, 2, 5, 20], "n_neighbors": [None, 1, min(6, n_rows - 1)]},
        "grid": [{"alpha": [0.1, 10.0]}],
    }
    chosen = {name: float(10 ** rng.uniform(*span)) for name, span in ranges.items()}
    return chosen | {name: these[rng.integers(len(these))] for name, these in words.items()}


def _results(model, X, arguments, is_learner):
    model.fit(X, *arguments)
    predicted = _numbers(model.predict(X))
    return [predicted] if is_learner else [_numbers(model.distributions_), predicted]


def _numbers(values):
    return values.toarray() if sparse.issparse(values) else np.asarray(values)


def _check_recovered(model, D, D_obs, observed):
    mass = np.asarray(model.hidden_mass_)
    atol = 1e-4 if D.dtype == np.float32 else 1e-9
    assert np.allclose(mass, np.where(observed, 0, D).sum(axis=1), rtol=0, atol=atol), "hidden mass"
    if model.keeps_proportions:
        kept = np.where(observed, D, 0)
        assert np.allclose(kept, kept.sum(axis=1, keepdims=True) * D_obs, rtol=0, atol=atol), "proportions"


def kill_once(path: Path) -> None:
    """``hidldl recover`` that is killed: files are as before or complete, and the next run leaves nothing else."""
    rng = np.random.default_rng(json.loads(path.read_bytes())["seed"])
    folder = path.with_name("killed")
    folder.mkdir()
    try:
        out = {name: folder / name for name in ("out.csv", "out.html", "out.json")}
        before = {name: b"as it was" if rng.random() < 0.5 else None for name in out}
        _kill(folder, before, rng.uniform(0, _seconds()))
        after = {name: file.read_bytes() if file.exists() else None for name, file in out.items()}
        others = [file.name for file in folder.iterdir() if file.name not in (*out, "table.csv")]
        assert all(name.startswith(PREFIX) for name in others), f"left behind: {others}"
        assert _recover(folder, PATIENCE_S) == 0, "the next run fails"
        assert {file.name for file in folder.iterdir()} == {*out, "table.csv"}, "not removed by the next run"
        for name, file in out.items():
            whole = _without_times(file.read_bytes())
            assert after[name] == before[name] or _without_times(after[name] or b"") == whole, f"{name} is a part"
    finally:
        shutil.rmtree(folder)


def _kill(folder: Path, before: dict[str, bytes | None], seconds: float) -> None:
    """Start the command with these files in its folder, and kill it; earlier if it was done before."""
    status = 0
    while status == 0:
        for file in folder.iterdir():
            file.unlink()
        for name, content in before.items():
            if content:
                (folder / name).write_bytes(content)
        frame().to_csv(folder / "table.csv", index=False)
        status = _recover(folder, seconds)
        seconds *= 0.8
    assert status == signal.SIGKILL, "ended by itself"


def _without_times(content: bytes) -> bytes:
    """A page says how long it took, and that is never the same."""
    return re.sub(rb"[\d.]+ (milli)?seconds?", b"", content)


def _recover(folder: Path, seconds: float) -> int:
    """The command in a process that starts with all modules loaded, killed after so long; its status."""
    from hidldl.__main__ import main

    options = ["-o", "out.csv", "--report", "out.html", "--model", "out.json", "--method", "meanfill"]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.chdir(folder)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nowhere, stream)
            main(["recover", "table.csv", *options], standalone_mode=False)
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return status
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


@cache
def _seconds() -> float:
    """How long the command takes when all is loaded."""
    from hidldl.__main__ import main

    with tempfile.TemporaryDirectory() as name:
        frame().to_csv(Path(name) / "table.csv", index=False)
        with redirect_stdout(io.StringIO()):
            main(["recover", "--check", f"{name}/table.csv"], standalone_mode=False)
        started = time.monotonic()
        assert _recover(Path(name), PATIENCE_S) == 0
        return time.monotonic() - started
