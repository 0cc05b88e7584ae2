"""Parts for other people's trainers: the loss, K-FAC as a callback, and a trainer over TRL's.

They stand on the core alone. `geosd.integrations.trl` names them all.
"""
