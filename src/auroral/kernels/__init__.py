"""Kernels: what the tasks of stateful boxes compute, as functions of Arrow tables.

A kernel knows nothing of Spark, files or trains: tuples of one bucket and what it remembered go
in, emissions and what it remembers next come out. For fixed input the emissions are the same
however it is cut into steps.
"""
