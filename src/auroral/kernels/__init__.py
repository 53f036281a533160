"""Kernels: what the tasks of stateful boxes compute, as functions of Arrow tables.

A kernel knows nothing of Spark, files or trains: it takes the tuples and the state of one bucket,
and returns emissions and the new state. For fixed input the emissions are the same however the
input is cut into steps.
"""
