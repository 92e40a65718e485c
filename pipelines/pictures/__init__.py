"""Pictures of graphs and of distances, by matplotlib and NetworkX (the `plot` extra), or as text for Graphviz.

`graphs` makes a `drawing` of a graph or a `part` of a graph: nodes and arcs with texts and colours, which a `view`
collects. `layout` places the nodes, `arrows` makes the curves between nodes, and `canvas` draws both; or `dot` writes a
text, which Graphviz lays out. `euler_stages` draws the results of the stages of finding an Euler circuit.
"""
