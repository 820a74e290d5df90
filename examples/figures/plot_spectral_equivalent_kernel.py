"""
What one link does to a kernel
==============================

Figure 1 and table 1 of Lu & Carreira-Perpiñán (2008). Two far sites are linked, and the kernel is seen from a
point near the first. Around the first site it shrinks, and on the far side of the site it turns negative: the
asymmetric shape. Around the second site, where it was zero, it gains a Gaussian: positive for a must-link,
negative for a cannot-link.
"""

import matplotlib.pyplot as plt
import numpy as np

from linkwise.spectral import kernel_profile

BLUE, RED, GREY = "#0072B2", "#B03A00", "0.55"

# %%
# The first site is at 0 and the second at 12, further than the kernel reaches. The kernel is seen from a
# point at distance 1 from the first site.
sites = [0.0, 12.0]
positions = np.linspace(-4.0, 16.0, 801)

figure, axes = plt.subplots(2, 2, figsize=(10, 6.2), layout="constrained")
for ax, kind, colour in zip(axes[0], ("must", "cannot"), (BLUE, RED), strict=True):
    for sigma, line in ((1.5, ":"), (1.0, "-"), (0.7, "--")):
        seen = kernel_profile(positions, point=1.0, sites=sites, kind=kind, sigma=sigma)
        if sigma == 1.0:
            ax.plot(positions, seen.original, color=GREY, linewidth=1.0, label="without link, σ = 1")
        ax.plot(positions, seen.equivalent, color=colour, linestyle=line, label=f"linked, σ = {sigma:g}")
    ax.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
    ax.plot(sites, [0.0, 0.0], "o", color="black", markersize=5)
    ax.set_title(f"{kind}-link between 0 and 12, seen from 1", fontsize=11)
    ax.set_xlabel("position")
    ax.set_ylim(-0.5, 1.1)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
axes[0, 0].set_ylabel("affinity")

# %%
# The same in the plane, for a must-link. Dashed contours are negative: points beyond the first site have
# become dissimilar.
side = np.linspace(-3.5, 3.5, 49)
levels = np.linspace(0.05, 0.85, 9)
for ax, centre, title in zip(
    axes[1], (0.0, 12.0), ("around the first site (k'ₐ)", "around the second site (k'ₛ)"), strict=True
):
    across, up = np.meshgrid(centre + side, side)
    grid = np.column_stack([across.ravel(), up.ravel()])
    seen = kernel_profile(grid, point=[1.0, 0.0], sites=[(0.0, 0.0), (12.0, 0.0)], kind="must")
    values = seen.equivalent.reshape(across.shape)
    ax.contour(across, up, values, levels=levels, colors=BLUE)
    ax.contour(across, up, values, levels=-levels[:3][::-1], colors=RED, linestyles="dashed")
    ax.plot(centre, 0.0, "o", color="black", markersize=5)
    ax.annotate("site", (centre, 0.0), xytext=(-24, 5), textcoords="offset points", fontsize=9)
    if centre == 0.0:
        ax.plot(1.0, 0.0, "x", color="black")
        ax.annotate(
            "seen from here",
            (1.0, 0.0),
            xytext=(-22, -48),
            textcoords="offset points",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "linewidth": 0.7},
        )
    ax.set_aspect("equal")
    ax.set_title(f"must-link, {title}", fontsize=11)

plt.show()
