"""From records to what people read: the tidy frame, tables, figures and the page."""
