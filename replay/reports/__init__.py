"""Reports: tables, figures, a static site and the page of a protocol."""
