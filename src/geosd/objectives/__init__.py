"""The methods: one objective per file, registered by name.

To add one, write a file in this folder with a frozen dataclass that subclasses
`geosd.objectives.objective.Objective` under `@register_objective("name")`;
nothing else needs to know of it.
"""
