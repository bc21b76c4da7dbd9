"""A table's picture as a file, in the colours and letters of all pictures."""

from pathlib import Path

from tacit.errors import TacitError
from tacit.report.drawing import Draw, saved


def picture_file(draw: Draw, path: Path, size: tuple[float, float]) -> None:
    """Draw to a file; its name's ending says of what kind.

    Args:
        draw: Draws on a matplotlib figure.
        path: Ends in .svg, .png or .pdf.
        size: In inches.

    Raises:
        TacitError: matplotlib is missing, or the file's ending is no picture's.

    Example:
        >>> picture_file(lambda figure, narrow: None, Path("bytes.unknown"), (4, 3))
        Traceback (most recent call last):
        ...
        tacit.errors.TacitError: cannot draw to bytes.unknown; end the name in .png, .svg or .pdf
    """
    if path.suffix not in {".png", ".svg", ".pdf"}:
        raise TacitError(f"cannot draw to {path.name}", "end the name in .png, .svg or .pdf")
    try:
        saved(draw, path, size)
    except ImportError:
        raise TacitError("pictures need matplotlib", 'pip install "tacit[plot]"') from None
