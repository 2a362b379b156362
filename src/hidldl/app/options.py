"""From what the page says to options of ``hidldl recover``; what was left as guessed is left to be guessed."""

import json
from typing import Any

from hidldl.methods import method_names

ROLES = ("label", "feature", "id", "out")
LEVEL = "0.9"


def options_of(wanted: Any, overview: dict[str, Any]) -> list[str]:
    """Options for the roles, in the order of the columns, and the settings that a page asks for.

    Parameters
    ----------
    wanted : dict
        ``roles``, one of "label", "feature", "id" and "out" for each column; ``hidden``, ``amounts``, ``method`` and
        ``intervals``. It comes from outside, so nothing is taken for granted.
    overview : dict
        What `hidldl.app.overview` said of the table.
    """
    columns = overview["columns"]
    roles = wanted.get("roles") if isinstance(wanted, dict) else None
    if not isinstance(roles, list) or len(roles) != len(columns) or not all(role in ROLES for role in roles):
        raise ValueError("The request does not say what each column is.")
    named = {role: [c["name"] for c, r in zip(columns, roles, strict=True) if r == role] for role in ROLES}
    _refuse(named)
    options = [] if _as_guessed(roles, overview) else _columns(roles, columns, named)
    hidden = str(wanted.get("hidden", "auto")).strip()
    if hidden != "auto":
        options += ["--hidden", hidden]
    if wanted.get("amounts"):
        options.append("--normalise")
    method = wanted.get("method", "bayes")
    if method not in method_names():
        raise ValueError("There is no such method.")
    options += ["--method", method]
    if wanted.get("intervals"):
        options += ["--intervals", LEVEL]
    return options


def _refuse(named: dict[str, list[str]]) -> None:
    if len(named["label"]) < 2:
        raise ValueError("Give two or more columns the role “Label”: a distribution is over several.")
    if not named["feature"]:
        raise ValueError("Give at least one column the role “Feature”: features are needed to find similar rows.")
    if len(named["id"]) > 1:
        raise ValueError("Only one column can name the rows; give the others another role.")


def _as_guessed(roles: list[str], overview: dict[str, Any]) -> bool:
    return not overview["problem"] and roles == [column["role"] for column in overview["columns"]]


def _columns(roles: list[str], columns: list[dict[str, Any]], named: dict[str, list[str]]) -> list[str]:
    options = ["--labels", json.dumps(named["label"])]
    # Not every name of a wide table: a command has only so much room.
    if any(role == ("feature" if column["why"] else "out") for role, column in zip(roles, columns, strict=True)):
        options += ["--features", json.dumps(named["feature"])]
    return [*options, "--id", named["id"][0]] if named["id"] else [*options, "--no-id"]
