"""Quality of service decides: scheduling, shedding and optimisation, on Spark and simulated."""
