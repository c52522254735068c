"""Shows anything in words and pictures: layout, units, remarks, the console, files, and what pictures share."""
