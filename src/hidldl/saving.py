"""Fitted models in files that hold numbers and words only: nothing in them is run when they are read.

A model is a tree of numbers, words, arrays and classes of registered methods. In a ``.npz`` file arrays are members of
their own, beside the tree as JSON; in a ``.json`` file they are base64 text inside it. No pickle is involved in either.
"""

import base64
import io
import json
import math
import sys
import warnings
import zipfile
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from hidldl import __version__
from hidldl.errors import ModelFileError, Remedy
from hidldl.estimator import DistributionEstimator
from hidldl.methods import class_named
from hidldl.recovery.following import FollowingLearner
from hidldl.replacing import replacing

FORMAT = "hidldl model 2"
MOST_BYTES = 2**31
MOST_FEATURES = 10**7
MOST_ROWS = 2**40
"""Larger files and models are refused: hidldl saves none of that size."""
COMMON_ATTRIBUTES = ("label_names_", "n_labels_", "n_features_in_", "feature_names_in_")
ARRAY_KINDS = "biufU"
LONGEST_NAME = 80


class _UnknownMethodError(Exception):
    """The class in a model file belongs to no known method."""


def save_model(path: str | PathLike[str], model: Any, about: dict[str, Any] | None = None) -> None:
    """Save what a fitted model needs to predict; the file holds no training data but the landmarks of ``BayesHidLDL``.

    Parameters
    ----------
    path : path
        A ``.npz`` or ``.json`` file; it appears complete or not at all.
    model : recoverer or learner
        A fitted model. Its recovered rows (``distributions_``) are not saved.
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
    """The model that ``save_model`` saved, and the ``about`` saved with it; the file is checked before it is used."""
    path = Path(path)
    _refuse_suffix(path)
    if not path.is_file():
        raise ModelFileError(str(path), "is not a file; check the path.")
    if path.stat().st_size > MOST_BYTES:
        raise ModelFileError(path.name, "is larger than any model of hidldl; name another file.")
    try:
        tree, arrays = _read_json(path) if path.suffix == ".json" else _read_npz(path)
        if tree["format"] != FORMAT:
            release = str(tree["version"])[:LONGEST_NAME]
            raise ModelFileError(path.name, f"is a model of another release ({release})", Remedy("save"))
        model, about = _decode(tree["model"], arrays), _decode(tree["about"], arrays)
        _refuse_useless(model)
    except ModelFileError:
        raise
    except _UnknownMethodError as error:
        method = str(error)[:LONGEST_NAME]
        problem = f"is of the method {method!r}, which is not known here"
        raise ModelFileError(path.name, problem, Remedy("register")) from None
    except Exception as error:  # a damaged or hostile file can raise anything
        problem = "is not a model that hidldl saved, or it is damaged"
        raise ModelFileError(path.name, problem, Remedy("save")) from error
    return model, about


def _refuse_useless(model: Any) -> None:
    """Refuse a model that cannot predict: parts with the right names may still not fit together."""
    if not isinstance(model, DistributionEstimator) or not 0 < model.n_features_in_ <= MOST_FEATURES:
        raise TypeError
    for names, length in (
        (getattr(model, "feature_names_in_", None), model.n_features_in_),
        (model.label_names_, model.n_labels_),
    ):
        if names is not None and not (isinstance(names, pd.Index) and len(names) == length):
            raise ValueError
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = np.asarray(model.predict(np.zeros((1, model.n_features_in_))))
    if not np.allclose(predicted.sum(), 1, atol=1e-3) or predicted.shape != (1, model.n_labels_):
        raise ValueError


def _refuse_suffix(path: Path) -> None:
    if path.suffix not in (".npz", ".json"):
        raise ModelFileError(path.name, "has the wrong ending; the names of model files end in .npz or .json.")


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _read_json(path: Path) -> tuple[Any, list[np.ndarray]]:
    tree = _parsed(path.read_text(encoding="utf-8"))
    members = (base64.b64decode(text, validate=True) for text in tree["arrays"])
    return tree, [_array(io.BytesIO(member), len(member)) for member in members]


def _read_npz(path: Path) -> tuple[Any, list[np.ndarray]]:
    with zipfile.ZipFile(path) as archive:
        members = {member.filename: member for member in archive.infolist()}
        # save_model neither compresses members nor lets them overlap, so together they are smaller than the file.
        is_stored = all(member.compress_type == zipfile.ZIP_STORED for member in members.values())
        if not is_stored or sum(member.file_size for member in members.values()) > path.stat().st_size:
            raise zipfile.BadZipFile

        def read(name: str) -> np.ndarray:
            member = members[f"{name}.npy"]
            with archive.open(member) as file:
                return _array(file, member.file_size)

        return _parsed(str(read("tree"))), [read(f"array{k}") for k in range(len(members) - 1)]


def _parsed(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"a model file cannot hold {constant}.")

    return json.loads(text, parse_constant=refuse)


def _array(file: IO[bytes], n_bytes: int) -> np.ndarray:
    """An array that ``_encode`` wrote, if its header promises what is there: room for it is made by the header."""
    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, _, dtype = headers[np.lib.format.read_magic(file)](file)
    n_items = math.prod(shape)
    # Lengths beside a 0 take no bytes, and texts without letters none either.
    if n_items * dtype.itemsize != n_bytes - file.tell() or max((n_items, *shape)) > max(n_bytes, MOST_FEATURES):
        raise ValueError
    if dtype.kind not in ARRAY_KINDS or (n_items and not dtype.itemsize) or min(shape, default=0) < 0:
        raise ValueError
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False)
    if dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError
    if dtype.kind == "U" and array.size:
        codes = array.ravel().view(f"{dtype.str[0]}u4")
        # Numbers that are no characters break whatever handles the text.
        if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError
    return array


def _encode(value: Any, arrays: list[np.ndarray], parts: tuple[type, ...] = ()) -> Any:
    """A value as a tree; ``parts`` are the dataclasses that the model around it is made of."""

    def encode(item: Any) -> Any:
        return _encode(item, arrays, parts)

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
        return {"names": [encode(name) for name in value.tolist()]}
    if sparse.issparse(value):
        return {"csr": [encode(part) for part in (value.data, value.indices, value.indptr)], "shape": list(value.shape)}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": {str(key): encode(item) for key, item in value.items()}}
    if isinstance(value, FollowingLearner):
        return {"follows": encode(value.trained())}
    return _encode_object(value, arrays, parts)


def _encode_object(value: Any, arrays: list[np.ndarray], parts: tuple[type, ...]) -> Any:
    kind = type(value)
    if isinstance(value, DistributionEstimator):
        if class_named(kind.__name__) is not kind:
            raise TypeError(f"{kind.__name__} is not a known method; call register_method before you save its models.")
        state, parts = _estimator_state(value), kind.saved_parts
    elif kind in parts:
        state = {field.name: getattr(value, field.name) for field in fields(value)}
    else:
        raise TypeError(f"a model file cannot hold {value!r}; keep numbers, words and arrays in saved_attributes.")
    return {"object": kind.__name__, "state": {key: _encode(item, arrays, parts) for key, item in state.items()}}


def _estimator_state(model: Any) -> dict[str, Any]:
    names = (*COMMON_ATTRIBUTES, *model.saved_attributes)
    attributes = {name: getattr(model, name) for name in names if hasattr(model, name)}
    parameters = model.get_params(deep=False).items()
    return {name: p for name, p in parameters if p is None or isinstance(p, bool | int | float | str)} | attributes


def _decode(node: Any, arrays: list[np.ndarray], parts: tuple[type, ...] = ()) -> Any:
    def decode(item: Any) -> Any:
        return _decode(item, arrays, parts)

    if not isinstance(node, dict):
        if isinstance(node, list):
            raise TypeError
        if isinstance(node, str):
            node.encode()  # refuses halves of characters, which JSON can hold
        return node
    (kind, content), *more = node.items()
    if kind == "array":
        return arrays[content]
    if kind == "dtype":
        return np.dtype({"<f4": np.float32, "<f8": np.float64}[content])
    if kind == "names":
        return pd.Index([decode(name) for name in content], tupleize_cols=False)
    if kind == "csr":
        matrix = sparse.csr_matrix(tuple(decode(part) for part in content), shape=more[0][1])
        matrix.check_format(full_check=True)
        return matrix
    if kind in ("list", "tuple"):
        items = [decode(item) for item in content]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {decode(key): decode(item) for key, item in content.items()}
    if kind == "follows":
        return FollowingLearner.already_trained(decode(content))
    return _decode_object(content, more[0][1], arrays, parts)


def _decode_object(name: str, state: Any, arrays: list[np.ndarray], parts: tuple[type, ...]) -> Any:
    """An object of a registered method, or of one of the parts of the model around it; nothing else."""
    part = next((part for part in parts if part.__name__ == name), None)
    if part is not None:
        return part(**{key: _decode(item, arrays, parts) for key, item in state.items()})
    kind = class_named(name)
    if kind is None:
        raise _UnknownMethodError(name)
    model = kind()
    if not {*COMMON_ATTRIBUTES, *kind.saved_attributes, *model.get_params(deep=False)}.issuperset(state):
        raise TypeError
    for key, item in state.items():
        setattr(model, key, _decode(item, arrays, kind.saved_parts))
    # Before anything is computed: parameters decide how much memory and time that takes.
    model._check_parameters(MOST_ROWS, model.n_labels_)
    model._check_loaded()
    return model
