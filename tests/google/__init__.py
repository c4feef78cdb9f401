"""What GoogleSQL's differential-privacy clause means, as cases of our own."""
