"""A few numbers per item out of the tags people gave it."""

from typing import cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from tacit.errors import TacitError


def tag_features(counts: sp.csr_array, components: int) -> NDArray[np.float32]:
    """Tags weighed by TF-IDF (items are the documents), then their leading directions.

    ``counts`` has an item per row and a tag per column. The directions are those of a truncated singular
    value decomposition: a principal component analysis that leaves the matrix sparse by not centring it.
    An item without tags is all zeros.

    Example:
        >>> counts = sp.csr_array(np.array([[2, 0, 1], [0, 3, 0], [1, 0, 4], [0, 0, 0]]))
        >>> tag_features(counts, 2).shape
        (4, 2)
    """
    items, tags = cast("tuple[int, int]", counts.shape)
    if not 1 <= components < min(items, tags):
        raise TacitError(
            f"{components} components of {items} items and {tags} tags",
            f"give from 1 to {min(items, tags) - 1}",
        )
    try:
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer
    except ImportError as error:
        raise TacitError(
            "features of tags need scikit-learn", "install it: pip install 'tacit[features]'"
        ) from error
    weighed = TfidfTransformer().fit_transform(sp.csr_matrix(counts).astype(np.float64))
    # A start that does not depend on a library's generator; the signs are fixed by the library.
    found = TruncatedSVD(components, algorithm="arpack", random_state=0).fit_transform(weighed)
    return np.asarray(found, dtype=np.float32)
