"""Resources: what is charged once and read or used afterwards. How each of them behaves, said once."""
