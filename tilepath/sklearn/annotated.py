"""AnnData objects (annotated matrices of single cells): use them as samples, and write units and clusters into them."""

from __future__ import annotations

from typing import Any


def as_table(X: Any) -> Any:
    """Return an AnnData object as a DataFrame of its matrix, with the names of its variables; else `X` as it is."""
    return X.to_df() if _is_annotated(X) else X


def annotate(som: Any, adata: Any, key: str) -> None:
    """Write the units and clusters of the observations of `adata` into it, as `SelfOrganizingMap.annotate` says."""
    if not _is_annotated(adata):
        raise TypeError(f"annotate takes an AnnData object, not {type(adata).__name__}; use predict for other samples")
    import pandas  # installed with anndata

    units = som._units(adata)
    adata.obs = adata.obs.drop(columns=[f"{key}_cluster", f"{key}_class"], errors="ignore")  # of another map
    adata.obs[f"{key}_unit"] = units
    if hasattr(som, "unit_clusters_"):
        # Scanpy gives each category a colour. Categories are text here, as in clusters that Scanpy makes.
        names = [str(number) for number in range(som.unit_clusters_.max() + 1)]
        adata.obs[f"{key}_cluster"] = pandas.Categorical.from_codes(som.unit_clusters_[units], names)
    if hasattr(som, "unit_classes_"):
        names = [str(name) for name in som.classes_]
        adata.obs[f"{key}_class"] = pandas.Categorical.from_codes(som.unit_classes_[units], names)
    adata.obsm[f"X_{key}"] = som.grid_.positions()[units]


def _is_annotated(X: Any) -> bool:
    return all(hasattr(X, name) for name in ("obs", "obsm", "var_names", "to_df"))
