"""What the page calls each remedy of an error."""

WORDS = {
    "sheet": "choose one",
    "name columns": "name every column",
    "header row": "write the column names in the first row",
    "labels": "give them the role “Label”",
    "drop label": "give it the role “Leave out”",
    "id": "choose a column that names the rows",
    "hidden=none": "choose “(none is hidden)” for hidden labels",
    "hidden=zero": "choose “0” for hidden labels",
    "hidden=empty,zero": "choose “empty or 0” for hidden labels",
    "normalise": "choose “amounts, to divide by their sums” for label cells",
    "no intervals": "leave out the intervals",
    "bayes": "choose BayesHidLDL",
    "output": "choose what to download",
    "skip": "correct the row in the table",
    "save": "recover the table again and download its model",
    "save table": "choose a file that was downloaded as “Model”",
    "register": "install the package that adds it where this page runs",
}
