"""Pictures of graphs, by matplotlib and NetworkX (the `plot` extra), or as text for Graphviz.

`picture` turns a graph, or a `part` of it, by way of a `view` into a `drawing`: nodes and arcs with texts and colours.
`layout` places the nodes, `arrows` the curves between them, `canvas` draws both; `dot` leaves that to Graphviz.
`euler_stages` draws what the stages of an Euler circuit make.
"""
