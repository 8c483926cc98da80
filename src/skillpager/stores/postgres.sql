CREATE SCHEMA skillpager;
CREATE TABLE skillpager.versions (version integer NOT NULL);
INSERT INTO skillpager.versions VALUES ({version});
CREATE TABLE skillpager.indexes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {columns}, data bytea NOT NULL
);
-- the number tells a library from a deleted one of its name
CREATE TABLE skillpager.libraries (
    name text PRIMARY KEY, id bigint GENERATED ALWAYS AS IDENTITY, version bigint NOT NULL
);
-- the row of a removed skill stays, without its text, so that readers learn that it is gone
CREATE TABLE skillpager.skills (
    library text NOT NULL REFERENCES skillpager.libraries ON DELETE CASCADE, name text NOT NULL,
    version bigint NOT NULL, removed boolean NOT NULL, state text NOT NULL, about text NOT NULL,
    content bytea NOT NULL, PRIMARY KEY (library, name)
);
CREATE INDEX skills_by_version ON skillpager.skills (library, version);
-- compressing embeddings, or what is compressed, costs time and saves nothing
ALTER TABLE skillpager.indexes ALTER data SET STORAGE EXTERNAL;
ALTER TABLE skillpager.skills ALTER content SET STORAGE EXTERNAL;
