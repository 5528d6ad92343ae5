"""The catalog as a file: written from the rows, and applied to them through the actions of catalog and tenants."""
