"""Load shedding in a running engine: drop boxes in front of superboxes, and what they did."""
