"""What a person's browser does with a page: what it loads, what moves on the page, how soon a click is answered."""
