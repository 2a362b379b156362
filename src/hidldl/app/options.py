"""From what the page asks for to arguments of ``recover_table`` and ``predict_table``.

What was left as guessed is left to be guessed.
"""

from typing import Any

from hidldl.methods import method_names

ROLES = ("label", "feature", "id", "out")
LEVEL = 0.9


def options_of(wanted: Any, overview: dict[str, Any]) -> dict[str, Any]:
    """Arguments for the roles, in the order of the columns, and the settings that a page asks for.

    Parameters
    ----------
    wanted : dict
        ``roles``, one of "label", "feature", "id" and "out" for each column; ``hidden``, ``amounts``, ``method`` and
        ``intervals``. It comes from outside, so nothing is taken for granted.
    overview : dict
        What `hidldl.app.overview` found in the table.
    """
    columns = overview["columns"]
    roles = wanted.get("roles") if isinstance(wanted, dict) else None
    if not isinstance(roles, list) or len(roles) != len(columns) or not all(role in ROLES for role in roles):
        raise ValueError("The request does not say what each column is.")
    names = {role: [c["name"] for c, r in zip(columns, roles, strict=True) if r == role] for role in ROLES}
    _refuse(names)
    method, hidden = wanted.get("method", "bayes"), wanted.get("hidden", "auto")
    if method not in method_names():
        raise ValueError("There is no such method.")
    if not isinstance(hidden, str):
        raise ValueError("The request does not say what marks a hidden label.")
    return {
        **({} if _as_guessed(roles, overview) else _columns(roles, columns, names)),
        "hidden": hidden.strip(),
        "normalise": bool(wanted.get("amounts")),
        "method": method,
        "intervals": LEVEL if wanted.get("intervals") else None,
    }


def prediction_options_of(wanted: Any) -> dict[str, Any]:
    """Arguments of ``predict_table``, from ``amounts`` and ``intervals``; columns are known from the model."""
    if not isinstance(wanted, dict):
        raise ValueError("The request does not say what to predict.")
    return {"normalise": bool(wanted.get("amounts")), "intervals": LEVEL if wanted.get("intervals") else None}


def _refuse(names: dict[str, list[str]]) -> None:
    if len(names["label"]) < 2:
        raise ValueError("Give two or more columns the role “Label”: a distribution is over several.")
    if len(names["id"]) > 1:
        raise ValueError("Only one column can name the rows; give the others another role.")


def _as_guessed(roles: list[str], overview: dict[str, Any]) -> bool:
    return not overview["problem"] and roles == [column["role"] for column in overview["columns"]]


def _columns(roles: list[str], columns: list[dict[str, Any]], names: dict[str, list[str]]) -> dict[str, Any]:
    arguments: dict[str, Any] = {"labels": names["label"], "id": names["id"][0] if names["id"] else False}
    # A column that cannot be a feature is left out by itself; to name one that is left out would be an error.
    if any(role == ("feature" if column["why"] else "out") for role, column in zip(roles, columns, strict=True)):
        arguments["features"] = names["feature"]
    return arguments
