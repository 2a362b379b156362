"""What the shell's options are called in the page, for messages that name them."""

import re

_WORDS = {
    "Name them with --labels": "Give them the role “Label” below",
    "(--labels)": "(role “Label”)",
    "(--features)": "(role “Feature”)",
    "(--id)": "(role “Names the rows”)",
    "leave it out of --labels": "give it the role “Leave out”",
    "use --hidden none": "choose “(none is hidden)” for hidden labels",
    "use --normalise": "choose “amounts, to divide by their sums” for label cells",
    "leave out --intervals": "leave out the intervals",
    "--hidden": "the mark of hidden labels",
}
_OPTIONS = re.compile("|".join(re.escape(option) for option in _WORDS))


def in_words(message: str) -> str:
    """The message with the page's words for options.

    >>> in_words("faces.csv has no column 'joy' (--labels).")
    "faces.csv has no column 'joy' (role “Label”)."
    """
    return _OPTIONS.sub(lambda match: _WORDS[match.group()], message)
