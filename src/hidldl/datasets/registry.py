"""The datasets of the paper: names, sizes, origins and checksums."""

import hashlib
import re
from dataclasses import dataclass

_PYLDL = "https://raw.githubusercontent.com/SpriteMisaka/PyLDL/082937638e075b35d349a2e69e36219d52512dc8/datasets/"
_GLERB = "https://raw.githubusercontent.com/Yunan-Lu/GLERB/53d27ba16807e2c3f2caba7f3bd7b79e66a141bc/datasets/"


_SHA256 = {
    "Yeast_alpha.mat": "8b7f7788371326776299407785a5520cd05b194f57cf3babdeb21fe3d4281167",
    "Yeast_cdc.mat": "c59015213b54a93d1142c2dda0cf4907b5672d25d3343abc8b34f1cf8ce7ccc9",
    "Yeast_cold.mat": "7b1f599ec4791052f9549c62cc6c8677af3e982a9f4bddb298c2bb2694811f21",
    "Yeast_dtt.mat": "26ecc88e892f5964140ff144d372d15c83112f10e781c8ed497458b9286e1f1a",
    "Yeast_elu.mat": "d78808326a3e80ada817e1fb77308a4561a23176843a216f458e77e0e2a8937f",
    "Yeast_spo.mat": "5a0bf3c55f268b24ff8b846a135befe2bc25ed085a46fc1c4b7f4c1f4c8ff16f",
    "SJAFFE.mat": "bdd53fb033a275b39b8fd873809cd69f3cee13234f5aa472aea0f5ad73b8a04b",
    "ns.mat": "a0398a8277cae4fa80415763e92ab973d531ac2a8048264d243cbe8103dfd65a",
    "Movie.mat": "5c8629905fdf18640410d43b30f1a84c17473df38e48f279f5a2af11019a1bac",
    "SBU_3DFE.mat": "59dec80525aaa859b8400a92e5b94e54b405ce6ed60bfad9ec95e58964e84707",
    "emotion6.mat": "2cc3b82d142b5eb27509105540390a8a7de2d6780b898d8e69c29a12a2e409a5",
}

_GIT_BLOB = {"RAF_ML.mat": "b028ebb7281d834e17b7a41579610fb649b1703b"}
"""For files of which only git's id is known: the SHA-1 of ``blob <size>\\0`` and the content."""


@dataclass(frozen=True)
class DatasetFile:
    """A published ``.mat`` file: what it holds and where it comes from."""

    name: str
    file: str
    n_rows: int
    n_features: int
    n_labels: int
    origin: str = _PYLDL
    label_key: str = "labels"
    aliases: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The file's public origin."""
        return self.origin + self.file

    @property
    def checksum(self) -> str:
        """The checksum in words, for messages."""
        sha256 = _SHA256.get(self.file)
        return f"sha256 {sha256}" if sha256 else f"git blob id {_GIT_BLOB[self.file]}"

    def matches(self, content: bytes) -> bool:
        """Whether ``content`` is the published file."""
        if self.file in _SHA256:
            return hashlib.sha256(content).hexdigest() == _SHA256[self.file]
        blob = b"blob %d\0" % len(content) + content
        return hashlib.sha1(blob, usedforsecurity=False).hexdigest() == _GIT_BLOB[self.file]


FILES: dict[str, DatasetFile] = {
    entry.name: entry
    for entry in (
        DatasetFile("Yeast-alpha", "Yeast_alpha.mat", 2465, 24, 18, aliases=("alpha",)),
        DatasetFile("Yeast-cdc", "Yeast_cdc.mat", 2465, 24, 15, aliases=("cdc",)),
        DatasetFile("Yeast-cold", "Yeast_cold.mat", 2465, 24, 4, aliases=("cold",)),
        DatasetFile("Yeast-dtt", "Yeast_dtt.mat", 2465, 24, 4, aliases=("dtt",)),
        DatasetFile("Yeast-elu", "Yeast_elu.mat", 2465, 24, 14, aliases=("elu",)),
        DatasetFile("Yeast-spo", "Yeast_spo.mat", 2465, 24, 6, aliases=("spo",)),
        DatasetFile("SJAFFE", "SJAFFE.mat", 213, 243, 6, aliases=("JAFFE",)),
        DatasetFile("Natural-Scene", "ns.mat", 2000, 294, 9, _GLERB, "label_distribution", aliases=("Scene",)),
        DatasetFile("Movie", "Movie.mat", 7755, 1869, 5),
        DatasetFile("SBU3DFE", "SBU_3DFE.mat", 2500, 243, 6, aliases=("SBU", "BU-3DFE", "s-BU3DFE")),
        DatasetFile("Emotion6", "emotion6.mat", 1980, 168, 7, aliases=("Emo",)),
        DatasetFile("RAF-ML", "RAF_ML.mat", 4908, 200, 6, aliases=("RAF",)),
    )
}
"""The paper's twelve datasets by name, in the order of its tables."""


def find_entry(name: str) -> DatasetFile | None:
    """The dataset of that name, alias or file, whatever the case and punctuation."""
    key = simplified(name)
    for entry in FILES.values():
        names = (entry.name, entry.file, entry.file.removesuffix(".mat"), *entry.aliases)
        if key in map(simplified, names):
            return entry
    return None


def simplified(name: str) -> str:
    """Letters and digits only, in lower case: how names are compared."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
