#!/usr/bin/env bash
# Check that every link between pages leads to an existing file and heading, in the repository and in an installed copy. Also check that every
# page of docs/ that a comment or a script names exists.
# usage: links_test.sh repository SOURCE
#        links_test.sh installed BUILD        install the pages into a temporary folder and check them there (the variable CMAKE names cmake)
set -euo pipefail
kind=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$kind" = installed ]; then
    "$CMAKE" --install "$2" --component documents --prefix "$work/copy" >/dev/null
    cd "$(dirname "$(find "$work/copy" -name README.md | awk '{ print length, $0 }' | sort -n | head -1 | cut -d' ' -f2-)")"
    pages=$(find . -name '*.md')
else
    cd "$2"
    pages=$(find . -name '*.md' -not -path './build*' -not -path './.git/*')
fi
[ "$(wc -l <<<"$pages")" -ge 40 ] || { echo "too few pages were found: $pages" >&2; exit 1; }

# shellcheck disable=SC2086 # names of pages have no spaces
perl -CSD -we '
    use strict;
    use utf8;
    use File::Basename;
    my ($bad, %anchors) = (0);
    sub lines { open my $in, "<", $_[0] or die "$_[0]: $!\n"; my @l = <$in>; return @l }
    sub anchors {    # return the anchors that GitHub and other readers make from headings
        my ($page) = @_;
        return $anchors{$page} //= { map {
            my $a = lc($_ =~ s/^#+\s+|\s+$//gr);
            $a =~ s/`//g;
            $a =~ s/[^\w\- ]//g;
            $a =~ s/ /-/g;
            ($a => 1)
        } grep { /^#+ / } lines($page) };
    }
    for my $page (@ARGV) {
        my ($number, $code) = (0, 0);
        for (lines($page)) {
            $number++;
            $code = !$code if /^\s*```/;
            next if $code or /^    /;
            while (/\]\(([^)\s]+)\)/g) {
                next if $1 =~ /^(https?|mailto):/;
                my ($file, $anchor) = split /#/, $1, 2;
                my $to = $file eq "" ? $page : dirname($page) . "/$file";
                if (!-e $to) { print "$page:$number: there is no $file\n"; $bad = 1 }
                elsif (defined $anchor and $to =~ /\.md$/ and !anchors($to)->{$anchor}) { print "$page:$number: $to has no heading #$anchor\n"; $bad = 1 }
            }
        }
    }
    exit $bad' $pages

[ "$kind" = repository ] || exit 0
status=0
while IFS=: read -r file line page; do
    [ -e "$page" ] || { echo "$file:$line: there is no $page"; status=1; }
done < <(grep -rnoIE 'docs/[a-z-]+(/[a-z0-9-]+)?\.md' --include='*' include src cli apps bench sim examples tests tools cmake Makefile)
exit $status
