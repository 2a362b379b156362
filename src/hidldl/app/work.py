"""The work behind the page, as a program of its own, so that it can be cancelled and its memory goes with it.

``python -m hidldl.app.work`` reads one request as a line of JSON from standard input and answers with lines of JSON:
steps of progress (``done``, ``total``, ``words``), and at the end an ``answer`` or a ``problem`` in the page's own
words.
"""

import json
import os
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hidldl.app.overview import model_overview, overview
from hidldl.app.words import WORDS
from hidldl.errors import ModelFileError, TableError

MOST_MEMORY = 8 * 2**30
MOST_FILE_BYTES = 4 * 2**30
"""What a look at a table or a model may use and write, whatever the file asks for."""
LOOKS = ("overview", "model")


def recover(request: dict[str, Any]) -> dict[str, Any]:
    """Recover a table and write the results that the request names."""
    from hidldl.tables.recovery import recover_table

    result = recover_table(Path(request["path"]), **_arguments(request), progress=_print_step)
    result.write(**request["files"], command=request["command"], progress=_print_step)
    return {}


def predict(request: dict[str, Any]) -> dict[str, Any]:
    """Predict the rows of a table with the model that was handed in, and write the results that the request names."""
    from hidldl.tables.prediction import predict_table

    result = predict_table(Path(request["path"]), request["given_model"], **_arguments(request))
    result.write(**request["files"], command=request["command"], progress=_print_step)
    return {}


def _arguments(request: dict[str, Any]) -> dict[str, Any]:
    return {**request["options"], "name": request["name"], "sheet": request["sheet"], "n_jobs": -1}


def _overview(request: dict[str, Any]) -> dict[str, Any]:
    return overview(Path(request["path"]), request["name"], request["sheet"])


def _model_overview(request: dict[str, Any]) -> dict[str, Any]:
    return model_overview(Path(request["path"]), request["name"], request["sheet"], Path(request["given_model"]))


ACTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "overview": _overview,
    "model": _model_overview,
    "recover": recover,
    "predict": predict,
}


def main() -> None:
    """Answer one request."""
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_server, daemon=True).start()
    if request["action"] in LOOKS:
        _limit_resources()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer: dict[str, Any] = {"answer": ACTIONS[request["action"]](request)}
    except TableError as error:
        answer = {"problem": error.worded(WORDS)}
    except ModelFileError as error:
        answer = {"problem": error.worded(WORDS, request["model_name"])}
    except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
        answer = {"problem": " ".join(str(error).split()) or "There is not enough memory for this table."}
    _print(answer)


def _end_with_server() -> None:
    """End when standard input does: the server is gone, and nobody waits for the answer."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def _limit_resources() -> None:
    """A file that gets past all checks fails here and leaves the machine alone; Windows has no such limits."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        for what, most in ((resource.RLIMIT_DATA, MOST_MEMORY), (resource.RLIMIT_FSIZE, MOST_FILE_BYTES)):
            hardest = resource.getrlimit(what)[1]
            resource.setrlimit(what, (most if hardest < 0 else min(most, hardest), hardest))


def _print_step(done: float, total: float | None, words: str) -> None:
    _print({"done": round(done, 4), "total": total, "words": words})


def _print(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
