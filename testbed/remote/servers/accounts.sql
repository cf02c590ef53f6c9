CREATE TABLE accounts (name text PRIMARY KEY, balance integer NOT NULL CHECK (balance >= 0));
INSERT INTO accounts VALUES ('alice', 100), ('bob', 20);
