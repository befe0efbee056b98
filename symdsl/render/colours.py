"""One colour per kind of path; printed in grey, they still differ in lightness.

Those of the built-in kinds are 8.5 apart in lightness (CIELAB L*); kinds that often compete are further apart.
"""

from __future__ import annotations

from symdsl.kinds import KINDS

OTHER = "#dddddd"
"""The colour of a kind that has none of its own; its name always stands beside it."""

INK = "#1a1a1a"
PAPER = "#ffffff"
FAINT = "#eeeeee"
QUIET = "#6b6b6b"


def colour(kind: str) -> str:
    """Return the colour of a kind, `#rrggbb`."""
    return (KINDS[kind].colour if kind in KINDS else "") or OTHER


def lightness(rgb: str) -> float:
    """Return the CIELAB lightness L* of an sRGB colour `#rrggbb`, from 0 (black) to 100 (white)."""
    encoded = (int(rgb[start : start + 2], 16) / 255 for start in (1, 3, 5))
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in encoded)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return float(116 * luminance ** (1 / 3) - 16) if luminance > 0.008856 else 903.3 * luminance


def ink_on(rgb: str) -> str:
    """Return a text colour that is legible on `rgb`."""
    return INK if lightness(rgb) > 55 else PAPER


def mixed(rgb: str, other: str, share: float) -> str:
    """Return a colour mixed with a share, from 0 to 1, of another one."""
    channels = ((int(rgb[start : start + 2], 16), int(other[start : start + 2], 16)) for start in (1, 3, 5))
    return "#" + "".join(f"{round(one + share * (two - one)):02x}" for one, two in channels)
