"""Fitted models in files that hold numbers and words only: nothing in them is run when they are read.

A model is a tree of a few known classes, numbers, words and arrays. In a ``.npz`` file arrays are members of their own,
beside the tree as JSON; in a ``.json`` file they are base64 text inside it. No pickle is involved in either.
"""

import base64
import io
import json
import warnings
import zipfile
from dataclasses import fields, is_dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from hidldl import __version__
from hidldl.base import _DistributionEstimator
from hidldl.errors import ModelFileError
from hidldl.recovery.following import FollowingLearner
from hidldl.replacing import replacing

FORMAT = "hidldl model 1"
MOST_BYTES = 2**31
MOST_FEATURES = 10**7
"""No model of ours is that large."""
CLASSES = {
    **dict.fromkeys(("Estimates", "LatentModel", "Parameters"), "recovery.latent"),
    **dict.fromkeys(("KernelMap", "Landmarks", "Ridge"), "recovery.kernelmean"),
    **{name: f"recovery.{name.lower()}" for name in ("BayesHidLDL", "HidLDL", "IncomLDL", "IncomLDLProx", "LDLLDM")},
    **{name: f"recovery.{name.lower()}" for name in ("MeanFill", "SelfTuned", "WInLDL")},
    **{name: f"learners.{name.lower()}" for name in ("LDLDPA", "LDLLRR", "PTBayes", "SABFGS", "SAIIS")},
}
"""The classes that a model file may name, and their homes."""
ALWAYS = ("label_names_", "n_features_in_", "feature_names_in_")
ARRAY_KINDS = "biufU"


def save_model(path: str | PathLike[str], model: Any, about: dict[str, Any] | None = None) -> None:
    """Save what a fitted model needs to predict; the file holds no training data but the landmarks of ``BayesHidLDL``.

    Parameters
    ----------
    path : path
        A ``.npz`` or ``.json`` file; it appears complete or not at all.
    model : recoverer or learner
        Fitted. What it recovered (``distributions_``) is not saved.
    about : dict, optional
        Numbers, words, arrays, lists and dicts of these to keep with it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from hidldl import BayesHidLDL, hide_labels, load_model, make_distributions, save_model
    >>> data = make_distributions(n_rows=100, random_state=0)
    >>> model = BayesHidLDL(random_state=0).fit(data.features, *hide_labels(data.distributions, 0.4, random_state=0))
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.npz"
    ...     save_model(path, model)
    ...     again, about = load_model(path)
    >>> np.array_equal(again.predict(data.features), model.predict(data.features))
    True
    """
    check_is_fitted(model)
    path = Path(path)
    _refuse_suffix(path)
    model._before_saving()
    arrays: list[np.ndarray] = []
    tree = {"format": FORMAT, "version": __version__, "model": _encode(model, arrays), "about": _encode(about, arrays)}
    with replacing(path) as target:
        if path.suffix == ".json":
            tree["arrays"] = [base64.b64encode(_npy(array)).decode("ascii") for array in arrays]
            target.write_text(json.dumps(tree, allow_nan=False), encoding="utf-8")
            return
        with target.open("wb") as file:
            members: Any = {f"array{k}": array for k, array in enumerate(arrays)}
            np.savez(file, tree=np.array(json.dumps(tree, allow_nan=False)), **members)


def load_model(path: str | PathLike[str]) -> tuple[Any, Any]:
    """The model that ``save_model`` saved, and what was kept with it; the file is checked before it is used."""
    path = Path(path)
    _refuse_suffix(path)
    if not path.is_file():
        raise ModelFileError(f"there is no model file {path}.")
    if path.stat().st_size > MOST_BYTES:
        raise ModelFileError(f"{path.name} is larger than any model of hidldl.")
    try:
        tree, arrays = _read_json(path) if path.suffix == ".json" else _read_npz(path)
        if tree["format"] != FORMAT:
            raise ModelFileError(f"{path.name} is a model of another release ({tree['version']}); save it again.")
        model, about = _decode(tree["model"], arrays), _decode(tree["about"], arrays)
        _refuse_useless(model)
    except ModelFileError:
        raise
    except Exception as error:  # whatever a damaged or hostile file makes of itself
        raise ModelFileError(
            f"{path.name} is not a model that hidldl saved, or it is damaged; save it again."
        ) from error
    return model, about


def _refuse_useless(model: Any) -> None:
    """Refuse what does not predict: a file may hold parts of the right names that do not fit together."""
    if not isinstance(model, _DistributionEstimator) or not 0 < model.n_features_in_ <= MOST_FEATURES:
        raise TypeError
    model._check_loaded()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = np.asarray(model.predict(np.zeros((1, model.n_features_in_))))
    labels = model.label_names_
    if not np.allclose(predicted.sum(), 1, atol=1e-3) or (labels is not None and len(labels) != predicted.shape[1]):
        raise ValueError


def _refuse_suffix(path: Path) -> None:
    if path.suffix not in (".npz", ".json"):
        raise ModelFileError(f"{path.name}: model files end in .npz or .json.")


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _read_json(path: Path) -> tuple[Any, list[np.ndarray]]:
    tree = _parsed(path.read_text(encoding="utf-8"))
    members = [io.BytesIO(base64.b64decode(text, validate=True)) for text in tree["arrays"]]
    return tree, [_plain(np.load(member, allow_pickle=False)) for member in members]


def _read_npz(path: Path) -> tuple[Any, list[np.ndarray]]:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    # Ours are not compressed and do not overlap: none can be larger than it looks.
    is_stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    if not is_stored or sum(member.file_size for member in members) > path.stat().st_size:
        raise zipfile.BadZipFile
    with np.load(path, allow_pickle=False) as arrays:
        names = [f"array{k}" for k in range(len(members) - 1)]
        return _parsed(str(arrays["tree"])), [_plain(arrays[name]) for name in names]


def _parsed(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no number of a model.")

    return json.loads(text, parse_constant=refuse)


def _plain(array: Any) -> np.ndarray:
    """The array, if it holds what ``_encode`` writes."""
    if array.dtype.kind not in ARRAY_KINDS or not (array.dtype.kind != "f" or np.isfinite(array).all()):
        raise ValueError
    return array


def _encode(value: Any, arrays: list[np.ndarray]) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float | np.generic):
        return float(value) if isinstance(value, float | np.floating) else value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, np.dtype):
        return {"dtype": value.str}
    if isinstance(value, pd.Index | np.ndarray):
        return {"names": [_encode(name, arrays) for name in value.tolist()]}
    if sparse.issparse(value):
        parts = (value.data, value.indices, value.indptr)
        return {"csr": [_encode(part, arrays) for part in parts], "shape": list(value.shape)}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_encode(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": {str(key): _encode(item, arrays) for key, item in value.items()}}
    if isinstance(value, FollowingLearner):
        return {"follows": _encode(value.trained(), arrays)}
    name = type(value).__name__
    if name not in CLASSES:
        raise TypeError(f"a model file cannot hold {value!r}.")
    return {"object": name, "state": {key: _encode(item, arrays) for key, item in _state(value).items()}}


def _state(value: Any) -> dict[str, Any]:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    kept = {name: getattr(value, name) for name in (*ALWAYS, *value._needed_to_predict) if hasattr(value, name)}
    plain = {
        n: p for n, p in value.get_params(deep=False).items() if p is None or isinstance(p, bool | int | float | str)
    }
    return plain | kept


def _decode(node: Any, arrays: list[np.ndarray]) -> Any:
    if not isinstance(node, dict):
        if isinstance(node, list):
            raise TypeError
        return node
    (kind, content), *more = node.items()
    if kind == "array":
        return arrays[content]
    if kind == "dtype":
        return np.dtype({"<f4": np.float32, "<f8": np.float64}[content])
    if kind == "names":
        return pd.Index([_decode(name, arrays) for name in content])
    if kind == "csr":
        matrix = sparse.csr_matrix(tuple(_decode(part, arrays) for part in content), shape=more[0][1])
        matrix.check_format(full_check=True)
        return matrix
    if kind in ("list", "tuple"):
        items = [_decode(item, arrays) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {key: _decode(item, arrays) for key, item in content.items()}
    if kind == "follows":
        return FollowingLearner.already_trained(_decode(content, arrays))
    return _rebuilt(content, {key: _decode(item, arrays) for key, item in more[0][1].items()})


def _rebuilt(name: str, state: dict[str, Any]) -> Any:
    found: Any = getattr(import_module(f"hidldl.{CLASSES[name]}"), name)
    if issubclass(found, _DistributionEstimator):
        return _refitted(found(), state)
    return found(**state)


def _refitted(model: Any, state: dict[str, Any]) -> Any:
    allowed = {*ALWAYS, *model._needed_to_predict, *model.get_params(deep=False)}
    if not allowed.issuperset(state):
        raise TypeError
    for key, item in state.items():
        setattr(model, key, item)
    return model
