"""A discrete-event simulator: the schedulers of the engine on a virtual clock."""
