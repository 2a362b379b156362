"""Label distribution learning with hidden labels.

Annotators overlook labels, and what they overlook inflates the rest: the row still sums to 1, so nothing
looks missing. This package recovers the complete distributions. Everything public can be imported from here;
names are loaded on first use, so that ``import hidldl`` is quick. They are listed in ``__init__.pyi``.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
