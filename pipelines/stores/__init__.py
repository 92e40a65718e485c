"""The Zarr stores, one module per schema. Only this package imports zarr.

Other programs open the arrays too. Every array names its dimensions. An array of distances has the attribute
`unreachable`, the value that means "unreachable" as Zarr writes it in JSON. Arrays of distances and the weights of a
graph have the attribute `unit` if the unit is known.
"""
