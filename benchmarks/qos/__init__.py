"""Quality of service decides: scheduling, load shedding and optimisation, on Spark and simulated."""
