"""Every team for staff, with state, quota, use and last activity: page, CSV and API. Changes nothing."""
