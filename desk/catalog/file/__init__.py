"""The catalog as a file: written from the rows, and applied to them by the actions of catalog and tenants."""
