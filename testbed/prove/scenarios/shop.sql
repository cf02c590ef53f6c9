CREATE TABLE items (name text PRIMARY KEY, price integer NOT NULL);
INSERT INTO items VALUES ('tea', 3), ('bread', 2);
