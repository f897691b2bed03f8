# SPDX-License-Identifier: Apache-2.0
"""How different colours look, also to people who lack one kind of cone, in CIELAB (a difference of 2 to 3 can just be seen)."""
import math
import re

# Machado, Oliveira, Fernandes: A physiologically-based model for simulation of color vision deficiency (2009), severity 1.
EYES = {
    "full": (1, 0, 0, 0, 1, 0, 0, 0, 1),
    "protan": (0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998),
    "deutan": (0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881),
    "tritan": (1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900),
}


def linear(css):
    """rgb(...) or #rrggbb as linear red, green and blue."""
    if css.startswith("#"):
        parts = [int(css[i:i + 2], 16) for i in (1, 3, 5)]
    else:
        parts = [float(v) for v in re.findall(r"[\d.]+", css)[:3]]
    return [v / 255 / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in parts]


def lab(css, eyes="full"):
    m, c = EYES[eyes], linear(css)
    r, g, b = (max(0, sum(m[i + k] * c[k] for k in range(3))) for i in (0, 3, 6))
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116
               for t in ((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b,
                         (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def least_distance(colours):
    """Of all pairs of {name: css} and all eyes: (distance, which two and whose)."""
    names = list(colours)
    return min((math.dist(lab(colours[a], eyes), lab(colours[b], eyes)), f"{a} and {b}, {eyes}")
               for eyes in EYES for i, a in enumerate(names) for b in names[i + 1:])


def contrast(css, other):
    """WCAG's ratio of two colours."""
    bright = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(css), linear(other)))
    return (bright[1] + 0.05) / (bright[0] + 0.05)
