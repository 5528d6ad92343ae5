"""Classes that discovery proposes: staff accept, edit or dismiss them."""
