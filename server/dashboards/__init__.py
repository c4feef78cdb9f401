"""Dashboards: tiles that a schedule refreshes and that anybody with a key or a link reads for free."""
