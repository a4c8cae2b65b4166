"""How the book is made from its notebooks: nothing here is needed to play."""
