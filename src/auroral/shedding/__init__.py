"""Load shedding: what is dropped, where and how much, when the machine cannot do everything."""
