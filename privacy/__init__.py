"""The words of the field: frozen values, standard library only."""
