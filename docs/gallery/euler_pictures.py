"""The pictures of docs/graphs.md: an Euler circuit stage by stage, as published for 15 vertices, and others.

python docs/gallery/euler_pictures.py [FOLDER]    into docs/gallery/graphs by default
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import tilepath


def main(folder: Path) -> None:
    with TemporaryDirectory() as work:
        demo = tilepath.generate(
            tilepath.synthetic_graph("euler", n=15, k=5, seed=15009), f"{work}/demo.zarr", sorted_rows=False
        )
        tilepath.picture_euler_stages(demo, folder, overwrite=True)
        tilepath.picture_graph(demo, folder / "circuit.svg", circuit=True, overwrite=True)
        tilepath.picture_graph(demo, folder / "spanning-tree.svg", spanning_tree=True, wash=True, overwrite=True)

        drawn = tilepath.synthetic_graph("random", n=12, edge_factor=3, directed=True, seed=1)
        some = tilepath.generate(drawn, f"{work}/random.zarr", simplify=True)
        tilepath.picture_graph(some, folder / "degrees.svg", in_degree=3, out_degree=3, overwrite=True)

        walked = tilepath.synthetic_graph("euler", n=8, k=3, path=True, seed=1)
        almost = tilepath.generate(walked, f"{work}/almost.zarr")
        tilepath.picture_graph(almost, folder / "spanning-overlay.svg", spanning_tree=True, overwrite=True)
        Path(f"{work}/rays.adj").write_text("a -> b, c, d, e\n")
        rays = tilepath.import_graph(f"{work}/rays.adj", f"{work}/rays.zarr")
        tilepath.picture_graph(rays, folder / "rays.svg", overwrite=True)
        turned = tilepath.write_reverse(rays, f"{work}/turned.zarr")
        tilepath.picture_graph(turned, folder / "rays-reverse.svg", overwrite=True)

        roads = tilepath.generate(
            tilepath.synthetic_graph("road", rows=14, columns=24, missing=0.8, seed=2), f"{work}/roads.zarr"
        )
        with tilepath.start(device="cpu") as client:
            paths = tilepath.single_source_shortest_paths(client, roads, f"{work}/paths.zarr", sources=[0])
        shown = {"distances": paths, "route": (0, roads.n - 1), "size": 4.5}
        tilepath.picture_graph(roads, folder / "route.png", **shown, overwrite=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "graphs")
