"""From text to bounded plan to statement."""
